"""A candidate's profile on the device: Nsight Compute where it may count, else what can be had without counters.

Knows neither judge nor sandbox: the folder is prepared, and how programs run is handed in.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

from engine.errors import ProfileUnavailable
from engine.profiling.device import nsight, results, watching
from engine.profiling.device.ceilings import DeviceCeilings
from engine.profiling.device.nsight import Collected
from engine.profiling.device.running import Run
from storage.records import HardwareLimit, ProfileResult

NO_PROFILER = "Nsight Compute (ncu) is not installed here"


@dataclass(frozen=True, slots=True)
class Subject:
    """What is profiled: a folder as `engine.profiling.device.target` wants it, and what it is measured against.

    `cache` keeps what is asked of the profiler once; `limit_s` bounds each program that is run.
    """

    folder: Path
    kernel_hash: str
    ceilings: DeviceCeilings
    limit: HardwareLimit
    cache: Path
    limit_s: float = 120.0
    python: str = sys.executable


def profile(subject: Subject, ncu: str | None, run: Run) -> ProfileResult:
    """Profile one call of the candidate; the result's evidence says which way it was taken.

    Raises:
        ProfileUnavailable: the candidate ran neither under the profiler nor without it.
    """
    started = time.monotonic()
    folder, here, limit_s = subject.folder, subject.ceilings, subject.limit_s
    nothing = nsight.Nothing(NO_PROFILER)
    if ncu:
        found = nsight.collect(folder, ncu, run, here.capability, subject.cache, limit_s, subject.python)
        if isinstance(found, Collected):
            return results.counted(subject.kernel_hash, found, here, subject.limit, time.monotonic() - started)
        nothing = found
    seen, done = watching.watch(folder, run, here, limit_s, subject.python)
    if seen is None:
        said = "it took too long" if done.is_timeout else nsight.last_error(done.output)
        raise ProfileUnavailable(f"{nothing.reason}; and without counters the candidate did not run: {said}")
    taken_s = time.monotonic() - started
    return results.watched(subject.kernel_hash, seen, nothing, here, subject.limit, taken_s)
