"""The knowledge base in the index: every row once, and the same figures as an engine reads from the files."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings

from storage import codec
from storage.index import queries
from storage.index.database import ACROSS_RUNS, Database, index_file, open_database
from storage.index.ingest import Ingest
from storage.index.queries import evidence, knowledge
from storage.index.queries.evidence import EvidenceFilter
from storage.index.queries.knowledge import TechniqueFilter
from storage.knowledge import files
from storage.knowledge.base import Base
from storage.knowledge.figures import figures_of, tally
from storage.knowledge.files import EVIDENCE, FAILURES, REVISIONS
from storage.knowledge.graph import attempts_by_edge, examples_by_edge, value
from storage.knowledge.records import Evidence, FailureCase, Outcome, Prior, Revision
from tests.examples import examples
from tests.samples import write_run
from tests.storage.children import child, line_from
from tests.storage.index_dump import dump, rebuilt
from tests.storage.knowledge_rows import (
    DEVICES,
    STATES,
    TECHNIQUES,
    attempt,
    attempts,
    cases,
    change,
    changes,
    state,
    technique,
)
from tests.storage.test_ingest import READER

PATIENCE_S = 20.0


def write_raw(
    place: Path, rows: Sequence[Evidence], revisions: Sequence[Revision], failures: Sequence[FailureCase] = ()
) -> None:
    """As files that were edited and joined by hand: ids may stand there twice."""
    place.mkdir(parents=True, exist_ok=True)
    for file, found in ((EVIDENCE, rows), (REVISIONS, revisions), (FAILURES, failures)):
        with open(place / file, "ab") as out:
            out.writelines(codec.dumps(row).encode("utf-8", "surrogatepass") + b"\n" for row in found)


def assert_same(db: Database, base: Base) -> None:
    """Everything that a page reads from the index against what an engine reads from the files."""
    assert knowledge.known(db) == base.known
    assert knowledge.rules(db) == base.rules()
    for rule in base.rules():
        shown_cases = {one.case_id for one in knowledge.cases(db, rule, 1000)}
        assert shown_cases == {one.case_id for one in base.cases if rule.is_about(one)}
    for device in (None, *DEVICES):
        reckoned = knowledge.reckoning(db, device=device)
        for name in (*TECHNIQUES, "never defined"):
            for place in (None, *STATES, ""):
                assert reckoned.figures(name, place) == base.figures(name, place, device=device)
    tried, laid = attempts_by_edge(base.rows), examples_by_edge(base.known.transitions)
    shown_edges = {(one.source, one.target): one for one in knowledge.edges(db)}
    assert shown_edges.keys() == {*tried, *laid}
    for ends, one in shown_edges.items():
        seen = tally(tried.get(ends, ()))
        assert (one.figures.attempts, one.figures.mean_gain) == (seen.attempts, figures_of(seen, 0, 0.5).mean_gain)
        assert one.value == value(seen)
    reckoned = knowledge.reckoning(db)
    for place in (*STATES, ""):
        assert reckoned.techniques_of(place) == base.techniques_of(place)
    assert evidence.count(db) == len(base.rows)
    shown = evidence.attempts(db, limit=1000)
    assert {row.evidence_id: row for row in shown} == {row.evidence_id: row for row in base.rows}
    assert {row.revision_id for row in knowledge.revisions(db)} == {one.revision_id for one in base.revisions}
    assert [knowledge.revision(db, one.revision_id) for one in base.revisions] == list(base.revisions)


@settings(max_examples=examples(40))
@given(first=attempts, first_changes=changes, second=attempts, second_changes=changes, shown=cases)
def test_sql_and_the_fold_find_the_very_same_figures(
    first: list[Evidence],
    first_changes: list[Revision],
    second: list[Evidence],
    second_changes: list[Revision],
    shown: list[FailureCase],
) -> None:
    """Reverts, inherited and disabled entries, ids written twice, and more rows arriving later."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        place = home / "knowledge"
        write_raw(place, first, first_changes, shown[::2])
        with open_database(index_file(home)) as db:
            ingest = Ingest(db, home / "runs")
            ingest.catch_up()
            assert_same(db, files.load(place))
            write_raw(place, second, second_changes, shown[1::2])
            ingest.catch_up()
            assert_same(db, files.load(place))


def test_a_second_look_changes_nothing_and_a_rebuild_gives_the_same_rows(db: Database, home: Path, root: Path) -> None:
    write_raw(home / "knowledge", [attempt(1), attempt(2), attempt(1, Outcome.SLOWER)], [change("a")])
    ingest = Ingest(db, root)
    ingest.catch_up()
    first, version = dump(db), db.version
    assert len(first["evidence"]) == 2
    ingest.catch_up()
    Ingest(db, root).catch_up()
    assert (dump(db), db.version) == (first, version)
    with open_database(index_file(home / "again")) as other:
        Ingest(other, root).catch_up()
        assert dump(other) == first


def test_a_reader_killed_again_and_again_has_every_row_once(home: Path, root: Path) -> None:
    for number in range(2):
        rows = [attempt(n, run_id=f"run {number}", error="x" * 500) for n in range(900)]
        files.append_evidence(rows, home / "knowledge")
        with child(READER, index_file(home), root) as reader:
            line_from(reader)
            os.kill(reader.pid, signal.SIGKILL)
            reader.wait()
    with open_database(index_file(home)) as db:
        Ingest(db, root).catch_up()
        assert evidence.count(db) == 1800
        assert dump(db) == rebuilt(home / "again", root)


def test_attempts_outlive_the_run_that_they_are_from(db: Database, home: Path, root: Path) -> None:
    write_run(root, "gone", depths=1)
    files.append_evidence([attempt(1, run_id="gone")])
    ingest = Ingest(db, root)
    ingest.catch_up()
    shutil.rmtree(root / "gone")
    ingest.catch_up()
    found = dump(db)
    assert len(found["evidence"]) == 1
    assert {name for name, rows in found.items() if rows} <= set(ACROSS_RUNS)


@pytest.mark.parametrize("file", [EVIDENCE, REVISIONS])
def test_files_that_were_replaced_or_taken_away_are_read_anew(db: Database, home: Path, root: Path, file: str) -> None:
    place = home / "knowledge"
    ingest = Ingest(db, root)
    write_raw(place, [attempt(1), attempt(2)], [change("a", states=(state(),)), change("b")])
    ingest.catch_up()
    other = home / "other"
    write_raw(other, [attempt(3)], [change("c", states=(state(),)), change("d"), change("e", reverts="seed")])
    (other / file).replace(place / file)
    ingest.catch_up()
    assert_same(db, files.load(place))
    (place / file).unlink()
    ingest.catch_up()
    assert_same(db, files.load(place))


def test_another_seed_takes_the_place_of_the_old_one(db: Database, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files.append_evidence([attempt(1)])
    Ingest(db, root).catch_up()
    monkeypatch.setattr("storage.knowledge.seed.revision", lambda: change("seed", techniques=(technique("new one"),)))
    monkeypatch.setattr("storage.knowledge.seed.digest", lambda: "0badc0de")
    Ingest(db, root).catch_up()
    assert list(knowledge.known(db).techniques) == ["new one"]
    assert evidence.count(db) == 1


def test_damaged_lines_are_told_and_hold_up_nothing(db: Database, home: Path, root: Path) -> None:
    write_raw(home / "knowledge", [attempt(1)], [])
    with open(home / "knowledge" / EVIDENCE, "ab") as file:
        file.write(b"\xff\n{}\n\n" + codec.dumps(attempt(2)).encode() + b'\n{"torn')
    Ingest(db, root).catch_up()
    assert evidence.count(db) == 2
    assert [file for file, _, _ in knowledge.problems(db)] == [EVIDENCE, EVIDENCE]
    assert knowledge.sums(db).damaged == files.load(home / "knowledge").damaged == 2


@pytest.mark.parametrize("watch", ["events", "poll"])
def test_what_is_appended_is_followed(
    db: Database, home: Path, root: Path, monkeypatch: pytest.MonkeyPatch, watch: str
) -> None:
    monkeypatch.setenv("TILEWRIGHT_WATCH", watch)
    ingest = Ingest(db)
    ingest.start()
    try:
        files.append_evidence([attempt(1)])
        assert db.wait_until(lambda: evidence.count(db) == 1, PATIENCE_S)
        files.append_evidence([attempt(2)])
        assert db.wait_until(lambda: evidence.count(db) == 2, PATIENCE_S)
    finally:
        ingest.stop()


def test_a_folder_that_cannot_be_made_holds_up_no_run(db: Database, home: Path, root: Path) -> None:
    (home / "knowledge").write_text("")
    ingest = Ingest(db)
    ingest.start()
    try:
        write_run(root, depths=1)
        assert db.wait_until(lambda: queries.count_runs(db) == 1, PATIENCE_S)
        assert ingest.failure == ""
    finally:
        ingest.stop()


def test_how_far_the_index_is_behind_counts_the_knowledge_base(db: Database, home: Path, root: Path) -> None:
    ingest = Ingest(db, root)
    ingest.catch_up()
    files.append_evidence([attempt(1)])
    assert ingest.lag().size == (home / "knowledge" / EVIDENCE).stat().st_size
    ingest.catch_up()
    assert ingest.lag().size == 0


ROWS = [
    attempt(1, predicted_gain=2.0, at=1.0, device="H200", kernel_class="matmul", language="cute", task="gelu"),
    attempt(2, Outcome.SLOWER, at=2.0, error="", predicted_gain=1.2, kernel_class="loss"),
    attempt(3, Outcome.NOT_COMPILED, at=3.0, error="error: no member named x", predicted_gain=1.1),
    attempt(4, technique="fuse", at=4.0, run_id="other", strategy="cutegen", origin="a team"),
    attempt(5, Outcome.SLOWER, technique="fuse", state="", at=5.0),
]
KNOWN = change(
    "start",
    states=(state(), state("found in a run", is_discovered=True, inherits="bandwidth bound")),
    techniques=(
        technique("tile", classes=("matmul",), languages=("cute",), helps="When reuse is high."),
        technique("fuse", is_disabled=True),
    ),
    priors=(Prior("bandwidth bound", "tile", 2.0, 0.8), Prior("bandwidth bound", "fuse", 9.0, 0.9)),
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """For tests that only read it."""
    home = tmp_path_factory.mktemp("filled")
    with open_database(index_file(home)) as opened:
        fill(opened, home)
        yield opened


def fill(db: Database, home: Path) -> None:
    files.append_revision(change("no seed", reverts="seed"), home / "knowledge")
    files.append_revision(KNOWN, home / "knowledge")
    files.append_evidence(ROWS, home / "knowledge")
    Ingest(db, home / "runs").catch_up()


def test_techniques_are_found_by_what_they_apply_to_and_where_they_are_known(filled: Database) -> None:
    def names(**chosen: str) -> list[str]:
        return [row.technique.name for row in knowledge.techniques(filled, TechniqueFilter(**chosen))]

    assert names() == ["fuse", "tile"]
    assert names(kernel_class="loss") == ["fuse"]
    assert names(language="cute", kernel_class="matmul") == ["fuse", "tile"]
    assert names(category="compute") == []
    assert names(text=" REUSE ") == ["tile"]
    assert names(state="found in a run") == ["fuse", "tile"]
    assert names(state="nowhere") == []
    inherited = knowledge.techniques(filled, TechniqueFilter(state="found in a run", text="reuse"))[0]
    assert (inherited.inherited_from, inherited.state) == ("bandwidth bound", "found in a run")
    on_device = knowledge.techniques(filled, TechniqueFilter(device="H200", text="reuse"))[0]
    assert on_device.figures.attempts == 1


def test_states_have_their_techniques_and_attempts(filled: Database) -> None:
    first, second = knowledge.states(filled)
    assert (first.state.name, first.techniques, first.figures.attempts) == ("bandwidth bound", 1, 4)
    assert (second.state.name, second.techniques, second.figures.attempts) == ("found in a run", 1, 0)


def test_attempts_are_paged_and_filtered_newest_first(filled: Database) -> None:
    def times(limit: int = 50, offset: int = 0, **chosen: str) -> list[float]:
        found = evidence.attempts(filled, EvidenceFilter(**chosen), limit, offset)
        assert evidence.count(filled, EvidenceFilter(**chosen)) >= len(found)
        return [row.at for row in found]

    assert times() == [5.0, 4.0, 3.0, 2.0, 1.0]
    assert times(2, 1) == [4.0, 3.0]
    assert times(technique="fuse") == [5.0, 4.0]
    assert times(state="bandwidth bound", outcome="slower") == [2.0]
    assert times(text="NO MEMBER") == [3.0]
    assert times(device="H200") == times(language="cute") == times(task="gelu") == [1.0]
    assert times(kernel_class="loss") == [2.0]
    assert times(run_id="other") == times(strategy="cutegen") == [4.0]


def test_one_techniques_story_is_told_by_device(filled: Database) -> None:
    found = {row.device: row.figures for row in knowledge.by_device(filled, "tile")}
    assert {device: one.attempts for device, one in found.items()} == {"H200": 1, "Xeon": 2}
    assert found["H200"].mean_gain == pytest.approx(1.5)
    assert [row.device for row in knowledge.by_device(filled, "fuse", "")] == ["Xeon"]


def test_negative_evidence_is_told_by_state(filled: Database) -> None:
    assert [(row.technique.name, row.state) for row in knowledge.negative(filled)] == [("tile", "bandwidth bound")]
    assert knowledge.negative(filled, device="H200") == []


def test_techniques_defined_nowhere_are_listed_apart(db: Database, home: Path, root: Path) -> None:
    fill(db, home)
    assert knowledge.undefined(db) == []
    files.append_evidence([attempt(9, technique="my own trick"), attempt(10, technique="")])
    Ingest(db, root).catch_up()
    assert [(row.name, row.figures.attempts) for row in knowledge.undefined(db)] == [("my own trick", 1)]


def test_predicted_is_set_against_measured(filled: Database) -> None:
    found = evidence.predicted(filled)
    assert [(row.predicted_gain, row.gain, row.outcome) for row in found] == [
        (1.2, 0.5, Outcome.SLOWER),
        (2.0, 1.5, Outcome.FASTER),
    ]
    assert len(evidence.predicted(filled, EvidenceFilter(device="H200"))) == 1
    assert len(evidence.predicted(filled, newest=1)) == 1


def test_changes_tell_whether_they_still_count(filled: Database) -> None:
    found = {row.revision_id: row for row in knowledge.revisions(filled)}
    assert list(found) == ["start", "no seed", "seed"]
    assert {name: row.counts for name, row in found.items()} == {"start": True, "no seed": True, "seed": False}
    assert (found["start"].states, found["start"].techniques, found["start"].priors) == (2, 2, 2)
    assert knowledge.revision(filled, "start") == KNOWN
    assert knowledge.revision(filled, "none") is None


def test_sums_and_choices_say_what_there_is(filled: Database) -> None:
    found = knowledge.sums(filled)
    assert (found.attempts, found.runs, found.imported, found.last_at) == (5, 2, 1, 5.0)
    assert (found.states, found.discovered, found.techniques, found.disabled) == (2, 1, 2, 1)
    assert (found.revisions, found.damaged) == (3, 0)
    choices = evidence.choices(filled)
    assert (choices.devices, choices.kernel_classes) == (["H200", "Xeon"], ["loss", "matmul"])
    assert (choices.languages, choices.tasks, choices.strategies) == (["cute"], ["gelu"], ["cutegen"])


def test_nothing_known_is_no_trouble(db: Database) -> None:
    """Before the first look at the files."""
    for read in (knowledge.states, knowledge.techniques, evidence.attempts, knowledge.revisions, evidence.predicted):
        assert read(db) == []
    assert knowledge.sums(db).attempts == 0
    assert evidence.choices(db).devices == []
