"""A pool as a toolchain: what a run, a suite's cell or a command asks is handed to the pool. Judges nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.evaluator.machine import lease
from engine.evaluator.machine.turns import Share
from engine.evaluator.pool import MEASURING, Act, Evaluation, Pool
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains import CompiledStart
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.examination import Examination
from storage.results.hardware_limit import HardwareLimit
from storage.results.profile_results import ProfileResult


class PooledToolchain:
    """A toolchain of a pool, for one run. All its measurements are taken on one device: two devices of one model differ
    by more than the noise of either, and a run compares its kernels with each other.

    `model` is the model of device that the run's kernels were measured on, `device` which one; both are empty where it
    has measured nothing. `step` says which step of the run asks, `share` on whose account.
    """

    def __init__(self, pool: Pool, name: str, run_id: str = "", model: str = "", device: str = "") -> None:
        self.name = name
        self.step: Callable[[], int] = lambda: 0
        self.share: Callable[[], Share] = Share
        self._pool, self._run_id, self._model, self._device = pool, run_id, model, device

    @property
    def fingerprint(self) -> str:
        """That of the pool's toolchain."""
        return self._pool.fingerprint(self.name)

    @property
    def lease_files(self) -> lease.Files:
        """Those of the device that measures."""
        return self._pool.lease_files(self.name, self._settled())

    def examine(self, task: Task) -> Examination:
        """On any device of the model."""
        found: Examination = self._ask(Act.EXAMINE, task)
        return found

    def examine_confined(self, task: Task) -> Examination:
        """On any device of the model."""
        found: Examination = self._ask(Act.EXAMINE_CONFINED, task)
        return found

    def limit(self, task: Task) -> HardwareLimit:
        """Of the device that measures."""
        found: HardwareLimit = self._ask(Act.LIMIT, task)
        return found

    def compile(self, task: Task, source: str) -> CompileResult:
        """Anywhere."""
        found: CompileResult = self._ask(Act.COMPILE, task, source)
        return found

    def compile_all(self, task: Task, sources: Sequence[str]) -> list[CompileResult]:
        """Anywhere, all in one place."""
        found: list[CompileResult] = self._ask(Act.COMPILE_ALL, task, *sources)
        return found

    def check(self, task: Task, source: str) -> CheckResult:
        """On any device of the model."""
        found: CheckResult = self._ask(Act.CHECK, task, source)
        return found

    def time(self, task: Task, source: str) -> TimingResult | CheckResult:
        """On the device that measures."""
        found: TimingResult | CheckResult = self._ask(Act.TIME, task, source)
        return found

    def time_briefly(self, task: Task, source: str) -> TimingResult | CheckResult:
        """On the device that measures."""
        found: TimingResult | CheckResult = self._ask(Act.TIME_BRIEFLY, task, source)
        return found

    def compiled_baseline(self, task: Task) -> TimingResult:
        """On the device that measures."""
        found: TimingResult = self._ask(Act.COMPILED_BASELINE, task)
        return found

    def compiler_source(self, task: Task) -> str:
        """On any device of the model."""
        return str(self._ask(Act.COMPILER_SOURCE, task))

    def compiled_start(self, task: Task) -> CompiledStart:
        """On any device of the model."""
        found: CompiledStart = self._ask(Act.COMPILED_START, task)
        return found

    def profile(self, task: Task, source: str, timed: TimingResult | None = None) -> ProfileResult:
        """On the device that measures."""
        found: ProfileResult = self._ask(Act.PROFILE, task, source, timed=timed)
        return found

    def close(self) -> None:
        """Give back what the pool holds for this run."""
        self._pool.close()

    def _settled(self, task: str = "") -> str:
        return self._pool.settle(self.name, self._model, self._device, self._run_id, task)

    def _ask(self, act: Act, task: Task, *sources: str, timed: TimingResult | None = None) -> Any:
        if act in MEASURING:
            self._device = self._settled(task.name)
        asked = Evaluation(
            act, self.name, task, tuple(sources), timed, self._model, self._device, self._run_id, self.step(),
            self.share(),
        )  # fmt: skip
        return self._pool.evaluate(asked)
