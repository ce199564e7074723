"""What engines write of the devices: claims that die with their process, uses by the hour, results by model."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from storage import device_use
from storage.device_use import KnownDevice, Stage
from storage.index.database import Database
from storage.index.queries.device_results import device_results, same_kernel
from storage.results.hardware_limit import REACHED, HardwareLimit
from storage.run import events as ev
from tests.storage.test_queries_predictions import FIRST, failed, made, tell, timed

CHILD = """
import os, signal
from storage import device_use
device_use.claim("check", "killed", 1, "GPU-1").holds()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_before_any_engine_there_is_nothing_to_show(home: Path) -> None:
    found = device_use.standing()
    assert (found.devices, found.queue, found.beside) == ((), (), ())
    assert not home.exists()


def test_a_claim_of_a_killed_process_counts_for_nothing() -> None:
    subprocess.run([sys.executable, "-c", CHILD], cwd=Path(__file__).parents[2], check=False)
    with device_use.claimed("time", "living", 2, "GPU-1"):
        assert [one.run_id for one in device_use.claims()] == ["living"]
    assert device_use.claims() == []


def test_a_run_is_at_work_on_a_device_that_it_settled_on_holds_or_waits_for_and_counts_once() -> None:
    device_use.found_here(KnownDevice("GPU-1", "NVIDIA H200"))
    with (
        device_use.claimed("settled", "r1") as settled,
        device_use.claimed("time", "r1", 2, "GPU-1") as same,
        device_use.claimed("check", "r2", 1, "GPU-1") as holding,
        device_use.claimed("check", "r3", 1, "GPU-1") as waiting,
        device_use.claimed("check", "", 0, "GPU-1") as no_run,
        device_use.claimed("compile", "r4", 1, "GPU-1"),
    ):
        settled.settles("GPU-1")
        same.waits()
        holding.holds()
        waiting.waits()
        no_run.waits()
        assert [one.runs for one in device_use.standing().devices] == [3]


def test_of_the_last_hour_only_the_part_inside_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000_000.0
    monkeypatch.setattr(time, "time", lambda: now)
    device_use.found_here(KnownDevice("GPU-1", "NVIDIA H200"))
    for asked_at, began, ended in ((990_000, 990_000, 996_500), (997_000, 997_010, 997_910)):
        with device_use.claimed("check", "r", 1, "GPU-1") as claim:
            now = asked_at
            claim.waits()
            now = began
            claim.holds()
            now = ended
            claim.lets_go()
            assert claim.claimed.stage is Stage.BESIDE
    now = 1_000_000.0
    (found,) = device_use.standing().devices
    assert (found.acts, found.busy) == (2, (100 + 900) / 3600)
    assert found.waited_s == 5.0
    now += 30 * 3600
    with device_use.claimed("check", "r", 1, "GPU-1") as claim:
        claim.holds()
    assert len(list(device_use.folder().glob("uses-*.jsonl"))) == 1  # older hours are gone


def test_a_device_of_another_host_is_shown_for_an_hour_after_it_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000_000.0
    monkeypatch.setattr(time, "time", lambda: now)
    device_use.found_here(KnownDevice("GPU-1", "NVIDIA H200"))
    device_use.found_here(KnownDevice("GPU-2 on far", "NVIDIA H200", host="far"))
    assert [one.known.device for one in device_use.standing().devices] == ["GPU-1", "GPU-2 on far"]
    now += 3601
    assert [one.known.device for one in device_use.standing().devices] == ["GPU-1"]


def test_results_are_added_up_by_model_of_device(db: Database, root: Path) -> None:
    limit = HardwareLimit("NVIDIA H200", 4000.0, 60000.0, 1 << 20, 1 << 20)
    raised = replace(limit, device=f"NVIDIA H200{REACHED}")
    tell(db, root, ev.LimitMeasured(limit), *FIRST, ev.LimitMeasured(raised), run_id="r1")
    tell(db, root, ev.LimitMeasured(limit), *made(1, "c001", None, depth=0), *failed(2, "c001"), run_id="r2")
    tell(db, root, ev.LimitMeasured(replace(limit, device="a processor")), run_id="r3")
    h200, processor = device_results(db)
    assert (h200.model, h200.runs, h200.judged, h200.passed, h200.timed) == ("NVIDIA H200", 2, 2, 1, 1)
    assert h200.best_low == 1.0
    assert (h200.best_speedup, processor.model, processor.timed) == (1.0, "a processor", 0)


def test_a_kernel_is_told_by_model_of_device_where_it_was_timed_on_several(db: Database, root: Path) -> None:
    h200 = ev.LimitMeasured(HardwareLimit("NVIDIA H200", 4000.0, 60000.0, 1 << 20, 1 << 20))
    h100 = ev.LimitMeasured(replace(h200.limit, device=f"NVIDIA H100{REACHED}"))
    tell(db, root, h200, *FIRST, run_id="r1")
    tell(db, root, h200, *FIRST, run_id="r2")
    tell(db, root, h100, *FIRST, run_id="copy", replay_of="r1")
    assert same_kernel(db, "r1", "c001") == []
    for name in ("r3", "r4"):
        tell(db, root, h100, *made(1, "c001", None, depth=0), *timed(2, "c001", 3.0), run_id=name)
    here, there = same_kernel(db, "r1", "c001")
    assert (here.model, here.run_id, here.runs, here.speedup) == ("NVIDIA H200", "r1", 2, 1.0)
    assert (there.model, there.run_id, there.runs, there.speedup) == ("NVIDIA H100", "r4", 2, 3.0)
    assert same_kernel(db, "r1", "c009") == []
