"""What pages say of results from several models of device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pages.parts.kernel.same_kernel import words as row_words
from storage import events as ev
from storage.database import index_file, open_database
from storage.hardware_limit import HardwareLimit
from storage.queries.device_results import SameKernelRow
from tests.pages.conftest import Open, words
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
    assert "The same kernel on other devices" in words(open_page("candidate", run="r1", candidate="c001"))
    assert "Runs on different devices make no common curve" in words(open_page("compare", runs="r1,r2"))
