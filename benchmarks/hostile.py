"""Attacks in a row against one evaluator: is each a verdict in time, is anything left, and does honest work notice?

    python -m benchmarks.hostile [--runs 200] [--match REGEX]
    python -m benchmarks.hostile --runs 1 --seconds 0.2 --match abort       smallest

Runs every kind of `tests/engine/evaluator/processes/hostile.py`, or those that `--match` finds, in turn, an honest
kernel after every tenth. Exits 1 when a run passed, outlasted its limit, or left something behind.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.evaluator import tasks
from engine.evaluator.machine import lease, processes
from engine.evaluator.machine.worker_limits import Limits, Times
from engine.evaluator.toolchains.cpu import CpuToolchain, lease_files
from storage.results.evaluation_results import TimingResult
from storage.results.vocabulary import Verdict
from tests.engine.evaluator.processes import hostile
from tests.engine.evaluator.toolchains import kernels

TIMES = Times(build_s=6.0, import_s=3.0, call_s=2.0)
LIMITS = Limits(tree_memory=4 << 30, address_space=5 << 30)
LONGEST_S = TIMES.build_s + TIMES.import_s + TIMES.call_s + 10.0
HONEST_EVERY = 10


@dataclass
class Tally:
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    honest_s: list[float] = field(default_factory=list)
    honest_ms: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=2.0, help="of trials, and of timing, an evaluation (2)")
    parser.add_argument("--match", default="", help="only kinds that this regular expression finds")
    options = parser.parse_args()
    runs, times = options.runs, replace(TIMES, check_s=options.seconds, timing_s=options.seconds)
    task = tasks.find("swish").task("cpu", {"batch_size": 64, "dim": 4096})
    tally, kinds = Tally(), [kind for kind in hostile.KINDS if re.search(options.match, kind)]
    with (
        tempfile.TemporaryDirectory() as name,
        private_temporary_folder(),
        CpuToolchain(Path(name), times, LIMITS) as toolchain,
    ):
        for _ in range(2 if runs >= HONEST_EVERY else 1):
            _honest(toolchain, task, tally)
        quiet = Surroundings.now(toolchain, Path(name))
        tally.honest_s.clear()
        tally.honest_ms.clear()
        _honest(toolchain, task, tally)
        for number in range(runs):
            kind = kinds[number % len(kinds)]
            started = time.monotonic()
            result = toolchain.check(task, hostile.KINDS[kind])
            seconds = time.monotonic() - started
            tally.verdicts[result.verdict] += 1
            tally.seconds.append(seconds)
            tally.faults += [f"{kind}: {fault}" for fault in Surroundings.now(toolchain, Path(name)).worse(quiet)]
            if result.verdict is Verdict.PASSED or not result.message or seconds > LONGEST_S:
                tally.faults.append(f"{kind}: {result.verdict} after {seconds:.1f} s: {result.message[:80]}")
            print(f"{number + 1:4} {seconds:6.2f} s  {result.verdict:14} {kind}", flush=True)
            if (number + 1) % HONEST_EVERY == 0:
                _honest(toolchain, task, tally)
    _report(tally)
    raise SystemExit(1 if tally.faults else 0)


@contextmanager
def private_temporary_folder() -> Iterator[None]:
    """So that what other programs leave in /tmp is not taken for ours."""
    with tempfile.TemporaryDirectory() as name:
        os.environ["TMPDIR"] = tempfile.tempdir = name
        yield
        tempfile.tempdir = None


@dataclass(frozen=True)
class Surroundings:
    """What an attack could leave behind."""

    processes: frozenset[int]
    scratch: frozenset[str]
    shared_memory: frozenset[str]
    temporary: frozenset[str]
    free_gib: float
    is_lease_free: bool

    @classmethod
    def now(cls, toolchain: CpuToolchain, scratch: Path) -> Surroundings:
        forkserver = toolchain._evaluator._process
        return cls(
            frozenset(processes.descendants(forkserver.pid) if forkserver else ()),
            _names(scratch),
            _names(Path("/dev/shm")),
            _names(Path(tempfile.gettempdir())),
            _available_gib(),
            _is_free(),
        )

    def worse(self, before: Surroundings) -> list[str]:
        found = [
            f"left {name} {sorted(map(str, left))[:3]}"
            for name, left in (
                ("processes", self.processes - before.processes),
                ("scratch", self.scratch - before.scratch),
                ("shared memory", self.shared_memory - before.shared_memory),
                ("temporary files", self.temporary - before.temporary),
            )
            if left
        ]
        found += ["holds the lease"] if not self.is_lease_free else []
        return found + ([f"{before.free_gib - self.free_gib:.1f} GiB less memory"] if self.is_tight(before) else [])

    def is_tight(self, before: Surroundings) -> bool:
        """More than this much is no noise of a machine that also does other things."""
        return self.free_gib < before.free_gib - 2.0


def _names(folder: Path) -> frozenset[str]:
    return frozenset(path.name for path in folder.iterdir())


def _available_gib() -> float:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) / 2**20


def _is_free() -> bool:
    with lease.held_if_free(*lease_files()) as is_free:
        return is_free


def _honest(toolchain: CpuToolchain, task: tasks.Task, tally: Tally) -> None:
    started = time.monotonic()
    checked, timed = toolchain.check(task, kernels.SWISH), toolchain.time(task, kernels.SWISH)
    tally.honest_s.append(time.monotonic() - started)
    if checked.verdict is not Verdict.PASSED or not isinstance(timed, TimingResult):
        tally.faults.append(f"the honest kernel got {checked.verdict} {checked.message[:80]} {timed}")
        return
    tally.honest_ms.append(timed.latency_ms)


def _report(tally: Tally) -> None:
    print(f"\n{sum(tally.verdicts.values())} attacks:", ", ".join(f"{n} {v}" for v, n in tally.verdicts.most_common()))
    print(f"seconds each: median {statistics.median(tally.seconds):.2f}, longest {max(tally.seconds):.2f}")
    first, rest = tally.honest_ms[0], tally.honest_ms[1:]
    if rest:
        ratios = [one / first for one in rest]
        print(
            f"honest kernel between: {len(rest)} times passed, latency over the first's: median "
            f"{statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}; "
            f"evaluation {statistics.median(tally.honest_s[1:]):.2f} s, first {tally.honest_s[0]:.2f} s"
        )
    print("\n".join(tally.faults) or "nothing left behind, none passed, all in time")


if __name__ == "__main__":
    main()
