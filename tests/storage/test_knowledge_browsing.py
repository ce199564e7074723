"""The knowledge base as people browse it, and that a page hears of what is new in its files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage import codec
from storage.index import queries
from storage.index.database import Database
from storage.index.ingest import KNOWLEDGE, Ingest
from storage.knowledge import browsing, files
from storage.knowledge.base import Base, EvidenceRows
from storage.knowledge.browsing import EvidenceFilter, TechniqueFilter
from storage.knowledge.files import EVIDENCE
from storage.knowledge.records import Outcome, Prior, Transition
from tests.samples import write_run
from tests.storage.knowledge_rows import attempt, change, state, technique

PATIENCE_S = 20.0


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
def filled(tmp_path_factory: pytest.TempPathFactory) -> Base:
    home = tmp_path_factory.mktemp("filled")
    fill(home)
    return files.load(home / "knowledge")


def fill(home: Path) -> None:
    files.append_revision(change("no seed", reverts="seed"), home / "knowledge")
    files.append_revision(KNOWN, home / "knowledge")
    files.append_evidence(ROWS, home / "knowledge")


def test_techniques_are_found_by_what_they_apply_to_and_where_they_are_known(filled: Base) -> None:
    def names(**chosen: str) -> list[str]:
        return [row.technique.name for row in browsing.techniques(filled, TechniqueFilter(**chosen))]

    assert names() == ["fuse", "tile"]
    assert names(kernel_class="loss") == ["fuse"]
    assert names(language="cute", kernel_class="matmul") == ["fuse", "tile"]
    assert names(category="compute") == []
    assert names(text=" REUSE ") == ["tile"]
    assert names(state="found in a run") == ["fuse", "tile"]
    assert names(state="nowhere") == []
    inherited = browsing.techniques(filled, TechniqueFilter(state="found in a run", text="reuse"))[0]
    assert (inherited.inherited_from, inherited.state) == ("bandwidth bound", "found in a run")
    on_device = browsing.techniques(filled, TechniqueFilter(device="H200", text="reuse"))[0]
    assert on_device.figures.attempts == 1


def test_states_have_their_techniques_and_attempts(filled: Base) -> None:
    first, second = browsing.states(filled)
    assert (first.state.name, first.techniques, first.figures.attempts) == ("bandwidth bound", 1, 4)
    assert (second.state.name, second.techniques, second.figures.attempts) == ("found in a run", 1, 0)


def test_attempts_are_paged_and_filtered_newest_first(filled: Base) -> None:
    def times(limit: int = 50, offset: int = 0, **chosen: str) -> list[float]:
        found = browsing.attempts(filled, EvidenceFilter(**chosen), limit, offset)
        assert browsing.count(filled, EvidenceFilter(**chosen)) >= len(found)
        return [row.at for row in found]

    assert times() == [5.0, 4.0, 3.0, 2.0, 1.0]
    assert times(2, 1) == [4.0, 3.0]
    assert times(technique="fuse") == [5.0, 4.0]
    assert times(state="bandwidth bound", outcome="slower") == [2.0]
    assert times(text="NO MEMBER") == [3.0]
    assert times(device="H200") == times(language="cute") == times(task="gelu") == [1.0]
    assert times(kernel_class="loss") == [2.0]
    assert times(run_id="other") == times(strategy="cutegen") == [4.0]


def test_one_techniques_story_is_told_by_device(filled: Base) -> None:
    found = {row.device: row.figures for row in browsing.by_device(filled, "tile")}
    assert {device: one.attempts for device, one in found.items()} == {"H200": 1, "Xeon": 2}
    assert found["H200"].mean_gain == pytest.approx(1.5)
    assert [row.device for row in browsing.by_device(filled, "fuse", "")] == ["Xeon"]


def test_negative_evidence_is_told_by_state(filled: Base) -> None:
    assert [(row.technique.name, row.state) for row in browsing.negative(filled)] == [("tile", "bandwidth bound")]
    assert browsing.negative(filled, device="H200") == []


def test_techniques_defined_nowhere_are_listed_apart(home: Path) -> None:
    fill(home)
    assert browsing.undefined(files.load()) == []
    files.append_evidence([attempt(9, technique="my own trick"), attempt(10, technique="")])
    assert [(row.name, row.figures.attempts) for row in browsing.undefined(files.load())] == [("my own trick", 1)]


def test_predicted_is_set_against_measured(filled: Base) -> None:
    found = browsing.predicted(filled)
    assert [(row.predicted_gain, row.gain, row.outcome) for row in found] == [
        (1.2, 0.5, Outcome.SLOWER),
        (2.0, 1.5, Outcome.FASTER),
    ]
    assert len(browsing.predicted(filled, EvidenceFilter(device="H200"))) == 1
    assert len(browsing.predicted(filled, newest=1)) == 1


def test_changes_tell_whether_they_still_count(filled: Base) -> None:
    found = {row.revision_id: row for row in browsing.revisions(filled)}
    assert list(found) == ["start", "no seed", "seed"]
    assert {name: row.counts for name, row in found.items()} == {"start": True, "no seed": True, "seed": False}
    assert (found["start"].states, found["start"].techniques, found["start"].priors) == (2, 2, 2)
    assert browsing.revision(filled, "start") == KNOWN
    assert browsing.revision(filled, "none") is None


def test_sums_and_choices_say_what_there_is(filled: Base) -> None:
    found = browsing.sums(filled)
    assert (found.attempts, found.runs, found.imported, found.last_at) == (5, 2, 1, 5.0)
    assert (found.states, found.discovered, found.techniques, found.disabled) == (2, 1, 2, 1)
    assert (found.revisions, found.damaged, found.tried) == (3, 0, 2)
    choices = browsing.choices(filled)
    assert (choices.devices, choices.kernel_classes) == (["H200", "Xeon"], ["loss", "matmul"])
    assert (choices.languages, choices.tasks, choices.strategies) == (["cute"], ["gelu"], ["cutegen"])


def test_edges_are_those_that_were_tried_and_those_laid_out(home: Path) -> None:
    fill(home)
    files.append_evidence([
        attempt(20, run_id="walk", child_hash="a", gain=2.0, device="H200"),
        attempt(21, Outcome.INCORRECT, run_id="walk", technique="fuse", parent_hash="a"),
    ])  # fmt: skip
    files.append_revision(change("laid", transitions=(Transition("tile", "split", "think", "b", "a"),)))
    rows = {(row.source, row.target): row for row in browsing.edges(files.load())}
    assert rows["tile", "fuse"].figures.attempts == 1
    assert rows["tile", "fuse"].value == -1.0
    assert rows["tile", "split"].figures.attempts == 0
    assert {ends for ends, row in rows.items() if row.figures.attempts} == {
        ("start", "tile"), ("start", "fuse"), ("tile", "fuse"),
    }  # fmt: skip
    on_device = {(row.source, row.target) for row in browsing.edges(files.load(), device="H200")}
    assert ("start", "tile") in on_device
    assert ("tile", "fuse") not in on_device


def test_nothing_known_is_no_trouble() -> None:
    base = Base((), EvidenceRows(), "")
    for read in (browsing.states, browsing.techniques, browsing.attempts, browsing.revisions, browsing.predicted):
        assert read(base) == []
    assert browsing.sums(base).attempts == 0
    assert browsing.choices(base).devices == []


def test_what_is_read_is_one_base_until_something_is_written(home: Path) -> None:
    fill(home)
    first = files.load()
    assert files.load() is first
    assert first.figures("tile") == first.figures("tile")
    files.append_evidence([attempt(30)])
    assert files.load().figures("tile").attempts == first.figures("tile").attempts + 1
    assert len(first.rows) == len(ROWS)


def test_damaged_lines_are_told_and_hold_up_nothing(home: Path) -> None:
    files.append_evidence([attempt(1)])
    with open(home / "knowledge" / EVIDENCE, "ab") as file:
        file.write(b"\xff\n{}\n\n" + codec.dumps(attempt(2)).encode() + b'\n{"torn')
    base = files.load()
    assert (len(base.rows), browsing.sums(base).damaged) == (2, 2)


def test_a_file_that_is_none_is_told_and_waited_for_by_nobody(home: Path) -> None:
    files.append_evidence([attempt(1)])
    os.mkfifo(home / "knowledge" / files.FAILURES)
    assert browsing.sums(files.load()).damaged == 1
    (home / "knowledge" / files.FAILURES).unlink()
    assert browsing.sums(files.load()).damaged == 0


@pytest.mark.parametrize("watch", ["events", "poll"])
def test_pages_hear_of_what_is_appended(
    db: Database, home: Path, root: Path, monkeypatch: pytest.MonkeyPatch, watch: str
) -> None:
    monkeypatch.setenv("TILEWRIGHT_WATCH", watch)
    ingest = Ingest(db)
    ingest.start()
    try:
        assert db.wait_until(lambda: db.run_version(KNOWLEDGE) > 0, PATIENCE_S)
        for number in (1, 2):
            before = db.run_version(KNOWLEDGE)
            files.append_evidence([attempt(number)])
            assert db.wait_until(lambda before=before: db.run_version(KNOWLEDGE) > before, PATIENCE_S)  # type: ignore[misc]
    finally:
        ingest.stop()


def test_a_second_look_tells_nobody(db: Database, home: Path, root: Path) -> None:
    files.append_evidence([attempt(1)])
    ingest = Ingest(db, root)
    ingest.catch_up()
    version = db.version
    ingest.catch_up()
    assert db.version == version


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
