"""A knowledge base as one file: nothing is lost on the way, and what contradicts is named before anything changes."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from storage import codec
from storage.knowledge import changes, exported, files, merging, seed
from storage.knowledge.base import Base
from storage.knowledge.exported import KnowledgeError
from storage.knowledge.merging import ConflictsError, Prefer
from storage.knowledge.records import Category, Evidence, Outcome, Prior, Revision, Technique
from tests.examples import examples
from tests.storage import knowledge_rows
from tests.storage.knowledge_rows import attempt, change, state, technique


def give(place: Path, *rows: Revision | Evidence) -> Path:
    """A knowledge base with these rows, exported to a file."""
    for row in rows:
        if isinstance(row, Revision):
            files.append_revision(row, place)
    files.append_evidence([row for row in rows if isinstance(row, Evidence)], place)
    file = place.with_suffix(".jsonl")
    exported.write(file, files.load(place), place.name)
    return file


@settings(max_examples=examples(25))
@given(rows=knowledge_rows.attempts, revisions=knowledge_rows.changes)
def test_exported_and_imported_it_says_the_same(rows: list[Evidence], revisions: list[Revision]) -> None:
    with tempfile.TemporaryDirectory() as name:
        here, there, file = Path(name) / "here", Path(name) / "there", Path(name) / "file"
        for one in revisions:
            files.append_revision(one, here)
        files.append_evidence(rows, here)
        base = files.load(here)
        exported.write(file, base, "team")

        read = files.load(file)
        assert (read.known, list(read.rows), read.revisions) == (base.known, list(base.rows), base.revisions)

        merging.import_file(file, Prefer.THEIRS, folder=there)
        found = files.load(there)
        assert [replace(row, origin="") for row in found.rows] == list(base.rows)
        assert {row.origin for row in found.rows} <= {"team"}
        own = [replace(one, origin="") for one in found.revisions if one.by != "import"]
        assert own == list(base.revisions)
        assert {name: found.states[name] for name in base.states} == base.states
        assert {name: found.techniques[name] for name in base.techniques} == base.techniques
        assert {pair: found.known.priors[pair] for pair in base.known.priors} == base.known.priors


def test_what_is_here_already_is_not_taken_twice(tmp_path: Path) -> None:
    file = give(tmp_path / "a team", change("theirs", techniques=(technique("new"),)), attempt(1), attempt(2))
    mine = tmp_path / "mine"
    files.append_evidence([attempt(2)], mine)
    done = merging.import_file(file, folder=mine)
    assert (done.attempts, done.revisions, done.known, done.origin) == (1, 1, 1, "a team")
    done = merging.import_file(file, folder=mine)
    assert (done.attempts, done.revisions, done.known) == (0, 0, 3)
    found = files.load(mine)
    assert [(row.candidate_id, row.origin) for row in found.rows] == [("c002", ""), ("c001", "a team")]
    assert found.techniques["new"]
    assert found.revisions[-1].origin == "a team"
    merging.import_file(give(mine, attempt(3), replace(attempt(4), rules=2)), folder=tmp_path / "third")
    assert [row.rules for row in files.load(tmp_path / "third").rows] == [1, 1, 1, 2], "each keeps its own"
    assert {row.origin for row in files.load(tmp_path / "third").rows} == {"a team", "mine"}


SAME = "shared"
THEIRS = (
    change(SAME, techniques=(technique("tile", about="their words"),), priors=(Prior("bound", "tile", 3.0, 0.5),)),
    change("r", states=(state("only there"),), why="theirs"),
    attempt(1, Outcome.SLOWER),
    attempt(2),
)
MINE = (
    change("other", techniques=(technique("tile", about="my words"), technique("only here"))),
    change("p", priors=(Prior("bound", "tile", 1.5, 0.5),)),
    change("r", states=(state("only there", about="as I see it"),), why="mine"),
    attempt(1, Outcome.FASTER),
)


def test_a_row_from_before_a_figure_was_kept_does_not_contradict_one_that_has_it(tmp_path: Path) -> None:
    old = give(tmp_path / "old", attempt(1), attempt(2))
    give(tmp_path / "new", attempt(1, over_eager=3.0, over_best=2.0), attempt(2, over_eager=3.0))
    done = merging.import_file(old, folder=tmp_path / "new")
    assert (done.attempts, done.known) == (0, 2)
    assert [row.over_best for row in files.load(tmp_path / "new").rows] == [2.0, None]
    other = give(tmp_path / "other", attempt(1, over_eager=4.0))
    with pytest.raises(ConflictsError, match="attempt run / c001 / tile"):
        merging.import_file(other, folder=tmp_path / "new")


def test_what_contradicts_is_named_and_nothing_is_changed(tmp_path: Path) -> None:
    file = give(tmp_path / "theirs", *THEIRS)
    give(tmp_path / "mine", *MINE)
    before = files.load(tmp_path / "mine").mark
    with pytest.raises(ConflictsError, match="--prefer mine or --prefer theirs") as error:
        merging.import_file(file, folder=tmp_path / "mine")
    assert [(one.kind, one.name) for one in error.value.conflicts] == [
        ("attempt", "run / c001 / tile"),
        ("revision", "r"),
        ("state", "only there"),
        ("technique", "tile"),
        ("prior", "tile in bound"),
    ]
    first = error.value.conflicts[0]
    assert isinstance(first.mine, Evidence)
    assert isinstance(first.theirs, Evidence)
    assert (first.mine.outcome, first.theirs.outcome) == (Outcome.FASTER, Outcome.SLOWER)
    assert "technique tile" in str(error.value)
    assert files.load(tmp_path / "mine").mark == before


@pytest.mark.parametrize(
    ("prefer", "words", "gain"), [(Prefer.MINE, "my words", 1.5), (Prefer.THEIRS, "their words", 3)]
)
def test_the_preferred_side_counts_and_the_rest_is_taken_over(
    tmp_path: Path, prefer: Prefer, words: str, gain: float
) -> None:
    file = give(tmp_path / "theirs", *THEIRS)
    give(tmp_path / "mine", *MINE)
    done = merging.import_file(file, prefer, folder=tmp_path / "mine")
    assert len(done.conflicts) == 5
    found = files.load(tmp_path / "mine")
    is_mine = prefer is Prefer.MINE
    assert found.techniques["tile"].about == words
    assert found.known.priors["bound", "tile"].gain == gain
    assert found.states["only there"].about == ("as I see it" if is_mine else "about only there")
    assert found.techniques["only here"]
    assert [row.outcome for row in found.rows] == [Outcome.FASTER if is_mine else Outcome.SLOWER, Outcome.FASTER]
    assert [row.origin for row in found.rows] == ["" if is_mine else "theirs", "theirs"]
    kept = sorted(path.name for path in (tmp_path / "mine").glob("*.before-*"))
    assert [name.partition(".before")[0] for name in kept] == ([] if is_mine else [files.EVIDENCE, files.REVISIONS])
    assert merging.import_file(file, prefer, folder=tmp_path / "mine").attempts == 0
    assert files.load(tmp_path / "mine").known == found.known


def test_a_revert_that_would_take_something_away_is_a_conflict_too(tmp_path: Path) -> None:
    shared = change(SAME, techniques=(technique("tile"),))
    file = give(tmp_path / "theirs", shared, change("back", reverts=SAME))
    give(tmp_path / "mine", shared)
    with pytest.raises(ConflictsError, match="technique tile"):
        merging.import_file(file, folder=tmp_path / "mine")
    merging.import_file(file, Prefer.MINE, folder=tmp_path / "mine")
    assert files.load(tmp_path / "mine").techniques["tile"] == technique("tile")
    give(tmp_path / "again", shared)
    merging.import_file(file, Prefer.THEIRS, folder=tmp_path / "again")
    assert files.load(tmp_path / "again").techniques["tile"].is_disabled


def test_who_reverted_the_seed_does_not_take_it_from_others(tmp_path: Path) -> None:
    file = give(tmp_path / "theirs", change("bare", reverts="seed"))
    with pytest.raises(ConflictsError, match=f"technique {seed.revision().techniques[0].name}"):
        merging.import_file(file, folder=tmp_path / "mine")
    before = files.load(tmp_path / "mine").known
    merging.import_file(file, Prefer.MINE, folder=tmp_path / "mine")
    assert files.load(tmp_path / "mine").known == before


def test_another_versions_seed_brings_only_what_is_not_known_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = seed.revision()
    known = mine.techniques[0]
    other = replace(mine, techniques=(replace(known, about="older words"), technique("dropped since")))
    with monkeypatch.context() as patch:
        patch.setattr(seed, "revision", lambda: other)
        file = give(tmp_path / "old", attempt(1))
    merging.import_file(file, folder=tmp_path / "mine")
    merging.import_file(file, folder=tmp_path / "mine")
    found = files.load(tmp_path / "mine")
    assert found.techniques["dropped since"]
    assert found.techniques[known.name] == known
    assert len(found.revisions) == 2


def test_a_file_that_is_cut_damaged_or_something_else_is_refused_whole(tmp_path: Path) -> None:
    file = give(tmp_path / "a", attempt(1), attempt(2))
    whole = file.read_bytes()
    for content, said in [
        (whole[:-5], "ends in the middle of a row"),
        (whole.replace(b'"faster"', b'"fast"'), "cannot be read"),
        (b"", "is no exported knowledge base"),
        (b'{"a": 1}\n', "is no exported knowledge base"),
        (whole.replace(b'knowledge":1', b'knowledge":2'), "newer version"),
    ]:
        file.write_bytes(content)
        with pytest.raises(KnowledgeError, match=said):
            merging.import_file(file, folder=tmp_path / "mine")
    assert files.load(tmp_path / "mine").rows == []
    with pytest.raises(KnowledgeError, match="cannot read"):
        merging.import_file(tmp_path / "none", folder=tmp_path / "mine")
    with pytest.raises(KnowledgeError, match="cannot write"):
        exported.write(tmp_path / "no" / "folder", files.load(tmp_path))


def test_an_exported_file_is_read_like_a_folder(tmp_path: Path) -> None:
    file = give(tmp_path / "a", change("x", techniques=(technique("new"),)), attempt(1))
    assert files.load(file).techniques["new"]
    assert list(files.load(file, seeded=False).techniques) == ["new"]
    assert files.load(file).mark != files.load(file, seeded=False).mark
    first = files.load(file).mark
    exported.write(file, files.load(tmp_path / "none"), "b")
    assert files.load(file).mark != first
    assert files.load(file).rows == []


def test_a_word_is_edited_disabled_enabled_and_set_back(tmp_path: Path) -> None:
    files.append_revision(change("start", techniques=(technique("tile"),), states=(state("bound"),)), tmp_path)

    def now() -> Technique:
        return files.load(tmp_path).techniques["tile"]

    def base() -> Base:
        return files.load(tmp_path)

    files.append_revision(changes.switched(base(), "tile", True), tmp_path)
    assert now().is_disabled
    with pytest.raises(KnowledgeError, match="disabled already"):
        changes.switched(base(), "tile", True)
    off = base().revisions[-1].revision_id
    files.append_revision(changes.reverted(base(), off), tmp_path)
    assert not now().is_disabled
    with pytest.raises(KnowledgeError, match="reverted already"):
        changes.reverted(base(), off)
    with pytest.raises(KnowledgeError, match="no revision 'none'"):
        changes.reverted(base(), "none")

    fields = {"about": "in short", "classes": "matmul, loss", "category": "compute", "is_disabled": "yes"}
    files.append_revision(changes.edited(base(), "tile", fields), tmp_path)
    words = technique("tile", about="in short", classes=("matmul", "loss"), is_disabled=True)
    assert now() == replace(words, category=Category.COMPUTE)
    for wrong in ({"name": "x"}, {"category": "magic"}, {"is_disabled": "perhaps"}):
        with pytest.raises(KnowledgeError):
            changes.edited(base(), "tile", wrong)
    assert codec.to_plain(changes.edited(base(), "bound", {"inherits": "x"}))["states"][0]["inherits"] == "x"
    with pytest.raises(KnowledgeError, match="nothing is known as 'nothing'"):
        changes.named(base(), "nothing")
