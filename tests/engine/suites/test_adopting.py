"""Runs that were made one by one, as cells of a suite."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.__main__ import main
from storage.run import events as ev
from storage.run.journal import Journal
from storage.run.settings import RunState
from storage.suites import files
from storage.suites.records import Cell, CellState
from storage.suites.standing import Suite, fold
from tests import samples


def adopted(name: str = "mine") -> Suite:
    suite = fold(files.read(files.find(name)))
    assert suite is not None
    return suite


def test_runs_become_cells_and_a_table_with_what_bounds_them(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks = [samples.write_run(home / "runs", f"r{n}", seed=n, depths=7).read_settings().task_name for n in (0, 3, 1)]
    assert main(["suite", "adopt", "mine", "r0", "r1"]) == 0
    assert main(["suite", "adopt", "mine", "r0", "r3", "--arm", "cutegen"]) == 0
    suite = adopted()
    assert suite.cells.keys() == {
        Cell(tasks[0], "cutegen", 1), Cell(tasks[2], "cutegen", 1),
        Cell(tasks[1], "cutegen", 2 if tasks[1] in (tasks[0], tasks[2]) else 1),
    }  # fmt: skip
    assert {one.state for one in suite.cells.values()} == {CellState.FINISHED}
    assert suite.spent.model_calls > 0
    capsys.readouterr()
    assert main(["suite", "export", "mine"]) == 0
    told = capsys.readouterr().out
    assert "| Of the limit | Own share | Bound by |" in told
    assert "profile: " in told
    assert all(f"| r{n} |" in told for n in (0, 1, 3))


def test_what_is_no_cell_of_it_is_refused(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples.write_run(home / "runs", "ended", seed=0, depths=2)
    samples.write_run(home / "runs", "lost", seed=1, depths=2, ending="running")
    assert main(["suite", "adopt", "mine", "lost"]) == 2
    assert "run lost has not ended" in capsys.readouterr().err
    assert main(["suite", "adopt", "mine", "ended", "--like", "nothing"]) == 2
    assert main(["suite", "adopt", "mine", "ended", "--like", "quick", "--arm", "by_hand"]) == 0
    assert len(adopted().defined.tasks) == 4
    assert [arm.name for arm in adopted().defined.arms] == ["by_hand"]


def test_adopting_takes_no_repeats_away_and_brings_a_cell_up_to_date(home: Path) -> None:
    run = samples.write_run(home / "runs", "mine", depths=2)
    assert main(["suite", "adopt", "s", "mine"]) == 0
    defined = adopted("s").defined
    assert [arm.is_adopted for arm in defined.arms] == [True]
    files.append(files.find("s"), replace(defined, repeats=3))
    journal = Journal(run.journal_file)
    journal.append(ev.RunEnded(RunState.STOPPED, "by a person", None))
    journal.close()
    assert main(["suite", "adopt", "s", "mine"]) == 0
    suite = adopted("s")
    assert suite.defined.repeats == 3
    assert [(one.state, one.reason) for one in suite.cells.values()] == [(CellState.STOPPED, "by a person")]
    seen = len(files.read(files.find("s")))
    assert main(["suite", "adopt", "s", "mine"]) == 0
    assert len(files.read(files.find("s"))) == seen


def test_no_run_is_started_in_the_empty_cells_of_an_arm_without_settings(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples.write_run(home / "runs", "mine", depths=2)
    assert main(["suite", "adopt", "s", "mine", "--like", "kernelbench"]) == 2
    assert "needs LEVEL PATH" in capsys.readouterr().err
    assert main(["suite", "adopt", "s", "mine", "--like", "quick"]) == 0
    assert main(["suite", "resume", "s"]) == 2
    assert "nothing of suite s can be started: the arm cutegen was made by `suite adopt`" in capsys.readouterr().err
    assert main(["suite", "resume", "s", "--repeats", "2"]) == 2
    assert adopted("s").defined.repeats == 1
    assert [path.name for path in (home / "runs").iterdir()] == ["mine"]
