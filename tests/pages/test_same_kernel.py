"""What pages say of results from several models of device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pages.parts.compare import compared_runs
from pages.parts.compare.compared_runs import Compared, Offered, offered
from pages.parts.kernel.same_kernel import words as row_words
from storage.index.database import Database, index_file, open_database
from storage.index.queries import RunChoice
from storage.index.queries.device_results import SameKernelRow
from storage.results.hardware_limit import HardwareLimit
from storage.run import events as ev
from tests import samples
from tests.pages.conftest import Open, everything, words
from tests.storage.test_queries_predictions import FIRST, tell


def test_a_device_is_a_row_with_its_own_baseline_and_the_run_that_was_last() -> None:
    here = row_words(SameKernelRow("NVIDIA H200", "r1", "c001", 1.0, 2.0, 1.9, 2.1, 0.05, 1, 0.0), "r1")
    assert (here["latency"], here["baseline"], here["interval"]) == ("1.00 ms", "2.00 ms", "1.90× to 2.10×")
    assert "this run" in str(here["device"])
    there = row_words(SameKernelRow("NVIDIA H100", "r2", "c004", 2.0, 3.0, 2.9, 3.1, 0.03, 2, 0.0), "r1")
    assert "r2 · 2 runs, the last one" in str(there["device"])


def test_one_kernel_on_two_models_has_a_table_and_no_curve_is_drawn_over_both(home: Path, open_page: Open) -> None:
    h200 = ev.LimitMeasured(HardwareLimit("NVIDIA H200", 4000.0, 60000.0, 1 << 20, 1 << 20))
    h100 = ev.LimitMeasured(replace(h200.limit, device="NVIDIA H100"))
    with open_database(index_file(home)) as db:
        tell(db, home / "runs", h200, *FIRST, run_id="r1")
        tell(db, home / "runs", h100, *FIRST, run_id="r2")
    assert "The same kernel on other devices" in everything(open_page("candidate", run="r1", candidate="c001"))
    assert "Runs on different devices make no common curve" in words(open_page("compare", runs="r1,r2"))


def test_runs_on_several_devices_are_put_into_no_figure_together(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seed in (("r1", 0), ("r2", 3), ("r3", 1)):
        samples.write_run(home / "runs", name, seed=seed)
    gathered = compared_runs.gather

    def elsewhere(db: Database, run_ids: Sequence[str]) -> list[Compared]:
        first, *others = gathered(db, run_ids)
        return [replace(first, conditions=replace(first.conditions, device="a CPU", language="c++")), *others]

    monkeypatch.setattr(compared_runs, "gather", elsewhere)
    said = words(open_page("compare", runs="r1,r2,r3"))
    assert "Languages on different devices do not compare" in said
    assert "Speed-ups on different devices have no common mean" in said


def test_offered_are_runs_that_compare_directly() -> None:
    def run(name: str, at: float, device: str, task: str = "t", sizes: str = "{}") -> RunChoice:
        return RunChoice(name, task, "m", "nvcc", "cuda", at, device, sizes)

    mixed = [run("a", 1, "H200"), run("b", 2, "CPU"), run("c", 3, "H200"), run("d", 4, ""), run("e", 5, "", "alone")]
    assert offered(mixed) == {"t": Offered(("c", "a"), "H200")}
    assert offered(mixed[1:3]) == {}, "no two of one device"
    assert offered([run("f", 6, "H200", sizes='{"N": 1}'), *mixed]) == {"t": Offered(("c", "a"), "H200")}, "other sizes"
    assert offered([mixed[0], mixed[3]]) == {"t": Offered(("d", "a"))}, "one that has not told its device yet"
    assert offered([mixed[0], mixed[2]]) == {"t": Offered(("c", "a"))}, "of all the same device: not told"
