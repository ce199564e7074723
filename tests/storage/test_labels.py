"""What people call runs, and runs that they delete: kept in files, found by the index, lost never before its time."""

from __future__ import annotations

import os
import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from storage import locks
from storage.index import queries
from storage.index.database import Database
from storage.index.ingest import Ingest
from storage.index.queries import Archive, GroupBy, RunFilter, RunSort
from storage.run import labels, liveness, trash
from storage.run.folder import RunFolder, find_run
from storage.run.labels import LabelError, Labels, MarkKind
from storage.run.trash import TrashError
from tests.samples import write_run


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file() and file.name != "engine.lock")
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def test_the_last_line_that_can_be_read_holds(root: Path) -> None:
    run = write_run(root, "a", depths=1, has_blobs=False)
    assert labels.read(run) == Labels()
    labels.change(run, lambda _: Labels("  the  good one ", ("fast", "fast", " nightly "), "a\nnote\n"), "ada")
    found = labels.read(run)
    assert (found.name, found.tags, found.note) == ("the good one", ("fast", "nightly"), "a\nnote")
    assert (found.changed_by, found.is_archived) == ("ada", False)
    file = run.path / labels.FILE
    before = file.read_bytes()
    assert labels.change(run, labels.with_tags(("fast",))) == found
    assert file.read_bytes() == before
    file.write_bytes(before + b'{"name": "half a li')
    assert labels.read(run) == found
    assert labels.change(run, labels.archived()).is_archived
    assert (labels.read(run).name, labels.read(run).is_archived) == ("the good one", True)


def test_changes_at_the_same_time_are_all_kept(root: Path) -> None:
    run = write_run(root, "a", depths=1, has_blobs=False)
    tags = [f"t{number}" for number in range(12)]
    threads = [threading.Thread(target=labels.change, args=(run, labels.with_tags((tag,)))) for tag in tags]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert labels.read(run).tags == tuple(sorted(tags))


def test_a_mark_stands_until_it_is_overturned_and_the_file_keeps_both(root: Path, db: Database) -> None:
    run = write_run(root, "a", depths=2, has_blobs=False)
    labels.change(run, labels.marked("c001", MarkKind.CLEAN, "read  every line\n", "ada"))
    labels.change(run, lambda old: replace(old, name="renamed"))
    (mark,) = labels.read(run).marks
    assert (mark.kind, mark.note, mark.marked_by) == (MarkKind.CLEAN, "read every line", "ada")
    assert re.fullmatch(r"marked clean by ada on \d{4}-\d\d-\d\d: read every line", mark.in_words)
    size = (run.path / labels.FILE).stat().st_size
    labels.change(run, labels.marked("c001", MarkKind.CLEAN, "read every line", "bob"))
    assert (run.path / labels.FILE).stat().st_size == size, "the same finding is no change"
    labels.change(run, labels.marked("c001", MarkKind.HACK, "", "bob"))
    labels.change(run, labels.marked("c002", MarkKind.UNCLEAR, "", "bob"))
    Ingest(db, root).catch_up()
    found = queries.marks(db, ["a", "b"])
    assert {name: (mark.kind, mark.marked_by) for name, mark in found["a"].items()} == {
        "c001": (MarkKind.HACK, "bob"), "c002": (MarkKind.UNCLEAR, "bob"),
    }  # fmt: skip
    assert found.keys() == {"a"}
    assert "read every line" in (run.path / labels.FILE).read_text()
    labels.change(run, labels.marked("c001", None))
    labels.change(run, labels.marked("c002", None))
    Ingest(db, root).catch_up()
    assert queries.marks(db, ["a"]) == {}
    with pytest.raises(LabelError, match="shorten it to 1000"):
        labels.change(run, labels.marked("c001", MarkKind.CLEAN, "n" * 1001))


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (Labels(tags=("two words",)), "cannot be a tag"),
        (Labels(tags=("a,b",)), "cannot be a tag"),
        (Labels(name="n" * 81), "the name has 81 characters: shorten it to 80"),
        (Labels(tags=tuple(f"t{number}" for number in range(21))), "21 tags are too many"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_changes_nothing(root: Path, wanted: Labels, said: str) -> None:
    run = write_run(root, "a", depths=1, has_blobs=False)
    with pytest.raises(LabelError, match=said):
        labels.change(run, lambda _: wanted)
    assert labels.read(run) == Labels()


def test_the_index_finds_runs_by_their_labels_and_puts_them_into_groups(db: Database, root: Path) -> None:
    runs = [
        write_run(root, f"r{seed}", seed=seed, depths=2, has_blobs=False, created_at=1e9 + seed) for seed in range(6)
    ]
    ingest = Ingest(db, root)
    ingest.catch_up()
    labels.change(runs[0], lambda _: Labels("zebra", ("a", "b"), "look at the tail"))
    labels.change(runs[1], lambda _: Labels("", ("b",), "", is_archived=True))
    ingest.look_at(["r0", "r1"])

    def found(chosen: RunFilter, sort: RunSort = RunSort.OLDEST) -> list[str]:
        return queries.listing(db, chosen, sort).run_ids

    assert found(RunFilter(tag="b")) == ["r0", "r1"]
    assert found(RunFilter(tag="b", archive=Archive.ACTIVE)) == ["r0"]
    assert found(RunFilter(archive=Archive.ARCHIVED)) == ["r1"]
    assert found(RunFilter(text="the tail")) == found(RunFilter(text="ZEBRA")) == ["r0"]
    assert found(RunFilter(), RunSort.TASK_BACKWARDS)[0] == "r0"
    row = queries.run(db, "r0")
    assert row is not None
    assert (row.title, row.tags, row.note) == ("zebra", ["a", "b"], "look at the tail")
    assert queries.choices(db).tags == ["a", "b"]
    assert queries.choices(db).archived == 1
    by_tag = {group.name: group.runs for group in queries.groups(db, GroupBy.TAG)}
    assert by_tag == {"": 4, "b": 2, "a": 1}
    by_task = {group.name: group for group in queries.groups(db, GroupBy.TASK, RunFilter(archive=Archive.ACTIVE))}
    assert {name: group.runs for name, group in by_task.items()} == {"square_matmul": 2, "softmax": 1, "swish": 2}
    best = {name: queries.run(db, name) for name in ("r0", "r3")}
    speedups = [one.best_speedup or 0.0 for one in best.values() if one]
    assert by_task["square_matmul"].mean_speedup == pytest.approx((speedups[0] * speedups[1]) ** 0.5)
    assert by_task["square_matmul"].best_speedup == max(speedups)
    noises = {one.best_speedup: one.best_noise for one in best.values() if one}
    assert by_task["square_matmul"].best_noise == noises[max(speedups)]
    totals = queries.run_totals(db, 0.0)
    others = [queries.run(db, run.run_id) for run in runs if run.run_id != "r1"]
    assert totals.tokens_since == sum(one.tokens or 0 for one in others if one)
    assert totals.best_speedup == max(one.best_speedup or 0.0 for one in others if one)
    assert queries.run_totals(db, 4e9).tokens_since == 0


def test_a_deleted_run_comes_back_byte_for_byte_and_goes_only_when_its_time_is_over(db: Database, root: Path) -> None:
    run = write_run(root, "a", depths=2)
    write_run(root, "b", depths=1)
    labels.change(run, lambda old: replace(old, name="kept"))
    ingest, before = Ingest(db, root), contents(run.path)
    ingest.catch_up()
    gone = trash.delete("a", "ada")
    ingest.look_at(["a"])
    assert queries.count_runs(db) == 1
    assert [(one.run_id, one.deleted_by) for one in trash.deleted_runs()] == [("a", "ada")]
    with pytest.raises(FileNotFoundError):
        find_run("a")
    assert trash.empty(gone.final_at - 1) == []
    assert contents(trash.restore("a").path) == before
    ingest.look_at(["a"])
    row = queries.run(db, "a")
    assert row is not None
    assert row.title == "kept"
    assert trash.empty(trash.delete("a").final_at) == ["a"]
    assert list(trash.trash_folder().iterdir()) == []
    with pytest.raises(FileNotFoundError, match="no deleted run 'a'"):
        trash.restore("a")


def test_a_run_at_work_is_not_deleted_and_none_takes_the_place_of_another(root: Path) -> None:
    run = write_run(root, "a", depths=1, has_blobs=False)
    before, lock = contents(run.path), liveness.hold(run)
    with pytest.raises(locks.AlreadyRunningError, match="stop it first"):
        trash.delete("a")
    os.close(lock)
    assert contents(run.path) == before
    trash.delete("a")
    again = write_run(root, "a", depths=1, has_blobs=False)
    with pytest.raises(TrashError, match="there is a run a again"):
        trash.restore("a")
    with pytest.raises(TrashError, match="already"):
        trash.delete("a")
    assert RunFolder(trash.trash_folder() / "a").settings_file.exists()
    assert again.settings_file.exists()
