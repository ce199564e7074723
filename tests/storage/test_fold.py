"""A run's record as rows: the same whether it was followed from the start, from a snapshot, or is made anew."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from storage.index import fold as folding
from storage.index import queries
from storage.index.chunks import SETTINGS
from storage.index.database import index_file, open_database
from storage.index.fold import RunFold
from storage.index.ingest import Ingest
from storage.run import events as ev
from storage.run import journal
from storage.run.settings import RunState
from storage.run.steering.verbs import Command, CommandKind
from tests.samples import sample_settings, write_run
from tests.storage.growth import grow
from tests.storage.index_dump import dump, rebuilt


def test_a_server_that_starts_again_goes_on_from_a_snapshot(
    home: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "SNAPSHOT_EVENTS", 20)
    run = write_run(root, depths=6, ending="running")
    whole = run.journal_file.read_bytes()
    lines = whole.splitlines(keepends=True)
    with open_database(index_file(home)) as db:
        run.journal_file.write_bytes(b"".join(lines[: len(lines) // 2]))
        Ingest(db, root).catch_up()
        assert db.snapshot_of("sample") is not None
    read = 0

    def counted(line: bytes) -> journal.Entry:
        nonlocal read
        read += 1
        return decode(line)

    decode = journal.decode
    with open_database(index_file(home)) as db:
        with open(run.journal_file, "ab") as file:
            file.writelines(lines[len(lines) // 2 :])
        monkeypatch.setattr(journal, "decode", counted)
        Ingest(db, root).catch_up()
        monkeypatch.setattr(journal, "decode", decode)
        assert read == len(lines) - len(lines) // 2, "what the snapshot holds is not folded again"
        grown = dump(db)
    again = rebuilt(home / "again", root)
    assert {name: rows for name, rows in grown.items() if name != "snapshots"} == {
        name: rows for name, rows in again.items() if name != "snapshots"
    }


NONE = (b"", b"no pickle", pickle.dumps(RunFold(sample_settings("sample"))), *(
    folding.code_version() + data for data in (b"", b"no pickle", pickle.dumps({}), pickle.dumps(Path))
))  # fmt: skip


@pytest.mark.parametrize("data", NONE)
def test_a_snapshot_that_is_none_is_passed_over(home: Path, root: Path, data: bytes) -> None:
    write_run(root, depths=2, ending="running")
    with open_database(index_file(home)) as db:
        Ingest(db, root).catch_up()
        with db.transaction() as writer:
            writer.add([("snapshots", {"run_id": "sample", "position": 10, "seq": 1, "fold": data})])
    with open_database(index_file(home)) as db:
        grow(db, root, ev.RunEnded(RunState.STOPPED, "enough", None))
        assert (row := queries.run(db, "sample")) is not None
        assert (row.state, row.state_reason) == (RunState.STOPPED, "enough")
        assert dump(db)["kernels"] == rebuilt(home / "again", root)["kernels"] != []


class Hostile:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (print, ("what a snapshot holds must not run",))


@pytest.mark.parametrize("thing", [Hostile(), Path("x"), pickle.Pickler])
def test_a_snapshot_makes_nothing_but_records(thing: object, capsys: pytest.CaptureFixture[str]) -> None:
    fold = RunFold(sample_settings("sample"))
    fold.record.places[1] = thing  # type: ignore[assignment]
    with pytest.raises(pickle.UnpicklingError, match="is no record"):
        RunFold.restored(folding.code_version() + pickle.dumps(fold))
    assert capsys.readouterr().out == ""


def test_folds_of_ended_runs_are_let_go_and_made_again_where_the_run_goes_on(home: Path, root: Path) -> None:
    write_run(root, depths=2, ending="finished")
    write_run(root, "live", depths=2, ending="running")
    with open_database(index_file(home)) as db:
        ingest = Ingest(db, root)
        ingest.catch_up()
        assert set(ingest._folds) == {"live"}
        book = journal.Journal(root / "sample" / "journal.jsonl")
        book.append(ev.EngineStarted(7, True))
        book.close()
        ingest.catch_up()
        assert (row := queries.run(db, "sample")) is not None
        assert (row.state, row.attempts) == (RunState.RUNNING, 4)
        assert dump(db) == rebuilt(home / "again", root)


def test_a_command_that_nobody_can_have_given_is_a_problem_and_the_run_goes_on(home: Path, root: Path) -> None:
    command = Command("a", CommandKind.COLLECT, "perhaps", "ada", 1.0)
    with open_database(index_file(home)) as db:
        grow(db, root, ev.CommandAcknowledged(command, 1), ev.CommandEffective("a", 1, ""), ev.BudgetWarned("x", 4, 5))
        (problem,) = queries.problems(db)
        assert (problem.file, "perhaps" in problem.message) == ("journal.jsonl", True)
        assert [row.effective_step for row in queries.commands(db, "sample")] == [1]
        assert any(isinstance(row.what, ev.BudgetWarned) for row in queries.feed(db, "sample"))


def test_a_run_whose_settings_cannot_be_read_keeps_its_events(home: Path, root: Path) -> None:
    folder = write_run(root, depths=1)
    settings = (folder.path / SETTINGS).read_bytes()
    (folder.path / SETTINGS).write_text("{")
    with open_database(index_file(home)) as db:
        Ingest(db, root).catch_up()
        assert queries.run(db, "sample") is None
        assert len(queries.events(db, "sample")) == folder.journal_file.read_bytes().count(b"\n")
        (folder.path / SETTINGS).write_bytes(settings)
        Ingest(db, root).catch_up()
        assert dump(db) == rebuilt(home / "again", root)


def test_a_run_whose_settings_alone_were_read_has_one_row_when_a_server_starts_again(home: Path, root: Path) -> None:
    run = write_run(root, depths=1, ending="running")
    whole = run.journal_file.read_bytes()
    run.journal_file.write_bytes(whole[:1])
    for lines in (whole[:1], whole):
        run.journal_file.write_bytes(lines)
        with open_database(index_file(home)) as db:
            Ingest(db, root).catch_up()
            assert len(dump(db)["runs"]) == len(dump(db)["progress"]) == 1
