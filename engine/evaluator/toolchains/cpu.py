"""The cpu toolchain: candidates built with g++ for the host and judged by processes of their own. Imports no torch."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.errors import ProfileUnavailable
from engine.evaluator import fitting
from engine.evaluator.build.host import installation
from engine.evaluator.build.host.installation import Installation
from engine.evaluator.machine import lease
from engine.evaluator.machine.worker_limits import Limits, Times, times_here
from engine.evaluator.profiling import perf
from engine.evaluator.profiling.cpu_profile import Observation, Report
from engine.evaluator.profiling.roof import measured
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.local import LocalToolchain, called, laid_out
from engine.evaluator.toolchains.requirements import checks
from storage.home import home
from storage.results.hardware_limit import HardwareLimit
from storage.results.profile_results import ProfileResult

ALLOCATING = ("describe", "examine", "check", "time", "measure", "deploy")
__all__ = ["CpuToolchain", "cache_folder", "checks", "lease_files"]


class CpuToolchain(LocalToolchain):
    """Builds, checks, times and profiles on this machine's processor."""

    name = "cpu"

    def __init__(self, scratch: Path | None = None, times: Times | None = None, limits: Limits | None = None) -> None:
        super().__init__(scratch, times or times_here(), limits or Limits())
        self._fitting: set[tuple[str, bool]] = set()

    @functools.cached_property
    def installation(self) -> Installation:
        """Compiler and headers of this machine, looked for once.

        Raises:
            ToolchainError: something is missing.
        """
        return installation.find()

    @property
    def cache(self) -> Path:
        """Libraries, precompiled headers and machine measurements; safe to delete."""
        return cache_folder()

    @property
    def lease_files(self) -> lease.Files:
        """Held while timing or profiling."""
        return lease_files()

    def _ask(self, act: str, task: Task, source: str, **changed: Any) -> Any:
        """Before anything of a task is allocated: does it fit? A machine that swaps or kills serves nobody."""
        backward = task.policy.backward
        if act in ALLOCATING and (task.source, backward) not in self._fitting:
            needed = fitting.remembered(task.source, lambda: self._estimate(task, **changed), backward=backward)
            if needed is not None:
                fitting.see_that_it_fits(task.source, task.sizes, needed)
            self._fitting.add((task.source, backward))
        return super()._ask(act, task, source, **changed)

    def _estimate(self, task: Task, *, confined: bool = False, **_: Any) -> int | None:
        needed = super()._ask("estimate", task, "", confined=confined)["bytes"]
        return None if needed is None else int(needed)

    def _session(self, task: Task, source: str, times: Mapping[str, object]) -> Any:
        """What is prepared before that runs beside others' timings, as a check does."""
        return self._ask("time", task, source, times=times, turn=self._leased)

    def _limit(self, task: Task, *, again: bool) -> HardwareLimit:
        needs = self._ask("describe", task, "")
        roof = measured(self.installation, cache_folder(), self._leased, again=again)
        size = int(needs["min_bytes"])
        limit = HardwareLimit(
            roof.device, roof.bandwidth_gb_s(size), roof.peak_gflop_s, size, int(needs["min_flop"]), roof.facts,
            str(needs["signature"]), called(needs), laid_out(needs), roof.others_share,
            leaves_masked_out=bool(needs["leaves_masked_out"]),
        )  # fmt: skip
        self._known_limits[task.source, task.policy.measured] = limit
        return limit

    def _profile(self, task: Task, source: str, timed_ms: float | None) -> ProfileResult:
        started = time.monotonic()
        roof = measured(self.installation, cache_folder(), self._leased)
        plain = self._ask("measure", task, source, turn=self._leased)
        if "failure" in plain:
            raise ProfileUnavailable(f"the candidate does not run under the profiler: {plain['failure']}")
        seen = Observation.from_plain(plain)
        report = Report(seen, perf.instruction_mix(seen.libraries), roof, timed_ms)
        return report.result(source, time.monotonic() - started)


def cache_folder() -> Path:
    """Libraries, precompiled headers and machine measurements; safe to delete."""
    return home() / "cache" / "cpu"


def lease_files() -> lease.Files:
    """One per processor that this process may use: jobs on sets that overlap take turns, others do not wait."""
    return lease.of_host(*(f"cpu-{number}" for number in os.sched_getaffinity(0)))
