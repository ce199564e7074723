"""The queue of a suite over real engines: whatever is gone, no cell is run twice."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from engine.cli.suites import settings_of_cell
from engine.suites.runner import Runner
from storage import locks
from storage.run import liveness
from storage.run.folder import RunFolder, runs_folder
from storage.run.settings import RunSettings
from storage.suites import files
from storage.suites.files import SuiteFolder
from storage.suites.records import (
    Arm,
    Cell,
    CellLeft,
    CellLinked,
    CellState,
    Defined,
    RunnerStarted,
    Spent,
    StopAsked,
    SuiteLimits,
    SuiteTask,
)
from storage.suites.standing import Suite, fold
from tests import samples
from tests.engine.test_cli import tilewright

MANUAL = Defined(
    "mine", (SuiteTask("swish", "swish"),), (Arm("a"), Arm("b")), settings="--model manual --depths 0 --collect off"
)
A, B = Cell("swish", "a", 1), Cell("swish", "b", 1)


def never(defined: Defined, cell: Cell) -> RunSettings:
    raise AssertionError(f"{cell} has a run already")


def suite_of(folder: SuiteFolder) -> Suite:
    found = fold(files.read(folder))
    assert found is not None
    return found


def work(folder: SuiteFolder, waits: bool = False, settings_of: object = settings_of_cell) -> str:
    return Runner(folder, [""], settings_of, lambda run: waits, lambda text: None).run()  # type: ignore[arg-type]


def test_runs_are_made_as_they_were_linked_and_left_where_they_wait_for_a_person(home: Path) -> None:
    folder = files.folder_of("mine")
    files.append(folder, MANUAL, RunnerStarted(1), CellLinked(A, "linked-before-the-kill"))
    assert work(folder) == "2 waiting of 2 runs"
    first = suite_of(folder)
    assert first.cells[A].run_id == "linked-before-the-kill"
    assert {one.run_id for one in first.planned} == {path.name for path in runs_folder().iterdir()}
    assert first.cells[B].reason == "Your reply is needed: write the first kernel."
    assert work(folder, waits=True, settings_of=never) == "2 waiting of 2 runs"
    assert {cell: one.run_id for cell, one in suite_of(folder).cells.items()} == {
        cell: one.run_id for cell, one in first.cells.items()
    }


def test_a_run_that_ended_while_no_runner_lived_is_taken_over_and_repeats_are_added_later(home: Path) -> None:
    folder = files.folder_of("mine")
    samples.write_run(runs_folder(), "done-already", depths=2)
    files.append(folder, replace(MANUAL, arms=(Arm("a"),)), RunnerStarted(1), CellLinked(A, "done-already"))
    assert work(folder, settings_of=never) == "1 finished of 1 run"
    assert suite_of(folder).cells[A].spent.model_calls > 0
    files.append(folder, replace(MANUAL, arms=(Arm("a"),), repeats=2))
    assert [one.state for one in suite_of(folder).planned] == [CellState.FINISHED, CellState.PLANNED]
    before = len(files.read(folder))
    files.append(folder, replace(MANUAL, arms=(Arm("a"),), repeats=1))
    work(folder, settings_of=never)
    assert not [line for line in files.read(folder)[before:] if isinstance(line.event, (CellLinked, CellLeft))]


def test_an_arm_in_order_begins_its_next_tasks_when_those_before_have_ended(home: Path) -> None:
    folder = files.folder_of("mine")
    tasks = tuple(SuiteTask(name, name) for name in ("swish", "gelu", "elu"))
    files.append(folder, replace(MANUAL, tasks=tasks, arms=(Arm("a", in_order=2), Arm("b"))))
    assert work(folder) == "1 planned, 5 waiting of 6 runs"
    held = Cell("elu", "a", 1)
    blocked = suite_of(folder).held_by(held)
    assert blocked is not None
    assert (blocked.cell, suite_of(folder).held_by(Cell("elu", "b", 1))) == (A, None)
    for cell in (A, Cell("gelu", "a", 1)):
        files.append(folder, CellLeft(cell, suite_of(folder).cells[cell].run_id or "", CellState.FINISHED))
    assert suite_of(folder).held_by(held) is None
    work(folder, waits=True)
    assert suite_of(folder).cells[held].state is CellState.WAITING


def test_nothing_is_started_once_a_limit_is_reached_or_a_person_has_said_stop(home: Path) -> None:
    folder = files.folder_of("mine")
    limited = replace(MANUAL, limits=SuiteLimits(model_calls=3))
    files.append(folder, limited, CellLeft(A, "gone", CellState.FINISHED, "", Spent(model_calls=3)))
    assert work(folder, settings_of=never).startswith("the suite's limit of 3 model calls is reached")
    lock = liveness.hold(folder.runner)
    assert lock
    with pytest.raises(locks.AlreadyRunningError, match="suite mine is already running"):
        work(folder)
    assert tilewright("suite", "stop", "mine").stdout.startswith("Asked suite mine to stop")
    assert isinstance(files.read(folder)[-1].event, StopAsked)


def test_a_torn_line_is_left_alone_and_the_next_writer_ends_it(home: Path) -> None:
    folder = files.folder_of("mine")
    files.append(folder, MANUAL, CellLinked(A, "run-1"))
    with open(folder.journal_file, "ab") as journal:
        journal.write(b'{"kind": "CellLinked", "ti')
    assert suite_of(folder).counts == Counter({CellState.RUNNING: 1, CellState.PLANNED: 1})
    files.append(folder, CellLinked(A, "run-2"), CellLinked(B, "run-3"))
    assert {cell.arm: one.run_id for cell, one in suite_of(folder).cells.items()} == {"a": "run-1", "b": "run-3"}
    assert RunFolder(runs_folder() / "run-1").settings_file.exists() is False


def test_what_is_asked_of_a_suite_that_is_not_there_is_answered(home: Path) -> None:
    done = tilewright("suite", "resume", "nothing")
    assert (done.returncode, "no suite 'nothing' was started here" in done.stderr) == (2, True)
