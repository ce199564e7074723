"""Runs that were made one by one, as cells of a suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.__main__ import main
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
    assert "| Of the limit | Bound by |" in told
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
