"""Two GPUs of one model as a driver of our own shows them, and a toolchain that only says where it was asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.errors import ToolchainError
from engine.evaluator import tasks
from engine.evaluator.machine.devices import Device
from engine.evaluator.pool import Evaluation
from engine.evaluator.pool import local as local_pool
from engine.evaluator.request import Request
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.cuda import CudaToolchain
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.examination import Examination, Standing
from storage.results.profile_results import ProfileResult
from storage.results.vocabulary import Verdict
from tests.engine.evaluator.machine.driver import FAST, TWIN, driver

__all__ = ["driver"]
ONE, OTHER = f"GPU-{FAST}", f"GPU-{TWIN}"


class Pretend(CudaToolchain):
    """Holds the device as the real one does, and asks no evaluator. `on_check` is called while the device is held,
    `on_start` where the evaluator would be started."""

    on_start: Callable[[], None] = staticmethod(lambda: None)
    on_check: Callable[[Device], None] = staticmethod(lambda gpu: None)

    def begin(self) -> None:
        pass

    def start(self) -> None:
        Pretend.on_start()

    def _examine(self, task: Task, *, is_confined: bool) -> Examination:
        return Examination(Standing.DECIDED)

    def _compile(self, task: Task, source: str) -> CompileResult:
        return CompileResult(True, 1.0)

    def _check(self, task: Task, source: str) -> CheckResult:
        with self._leased():
            Pretend.on_check(self.gpu)
        return CheckResult(Verdict.PASSED, 1.0)

    def _time(self, task: Task, source: str) -> TimingResult:
        with self._leased():
            return TimingResult((1.0,) * 9, (2.0,) * 9)

    def _profile(self, task: Task, source: str, timed_ms: float | None) -> ProfileResult:
        raise ToolchainError("the profiler's process broke")


@pytest.fixture
def two_gpus(driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Processes started here see two devices of one model; leases and home are the test's own."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", f"{ONE},{OTHER}")
    monkeypatch.setenv("TILEWRIGHT_LEASES", str(tmp_path / "leases"))
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(local_pool, "find_toolchain", lambda name: Pretend)
    monkeypatch.setattr(Pretend, "on_check", staticmethod(lambda gpu: None))
    return monkeypatch


def asked(kind: Callable[[Task, str], Request[Any]], run_id: str = "r", device: str = "") -> Evaluation[Any]:
    """An evaluation of some kernel."""
    request = kind(tasks.find("swish").task("cpu"), "class ModelNew: pass")
    return Evaluation(request, "cuda", "", device, run_id)


def beside(work: Callable[[], Any]) -> Callable[[], Any]:
    """The work in a thread; calling what is returned waits for its result."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()

    def wait() -> Any:
        thread.join(60)
        return found[0]

    return wait
