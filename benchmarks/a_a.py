"""Time one kernel again and again and count how often a run would be called an improvement on the run before.

    python -m benchmarks.a_a swish --runs 100
    python -m benchmarks.a_a square_matmul --kernel my_kernel.py --set N=512
    TILEWRIGHT_TIMING_SECONDS=2 python -m benchmarks.a_a softmax --toolchain cuda

Nothing has changed between two runs, so every improvement is a false one; the engine's own rule decides. Without
--kernel the task's own module is timed against itself: its true speed-up is one.
"""

from __future__ import annotations

import argparse
import itertools
import re
import statistics
import time
from dataclasses import replace
from pathlib import Path

from engine.argument_types import size
from engine.evaluator import tasks
from engine.evaluator.request import Evaluator
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.cpu import CpuToolchain
from engine.evaluator.toolchains.cuda import CudaToolchain
from storage.results.check_records import CheckOutcome
from storage.results.evaluation_results import TimingResult, is_improvement
from storage.results.policy import EVERYTHING

TOOLCHAINS = {each.name: each for each in (CpuToolchain, CudaToolchain)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task")
    parser.add_argument("--kernel", type=Path, help="a file with a class ModelNew; default: the task's own module")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--toolchain", default=CpuToolchain.name, choices=TOOLCHAINS)
    parser.add_argument("--set", dest="overrides", action="append", type=size, default=[])
    options = parser.parse_args()
    task = tasks.find(options.task).task(options.toolchain, dict(options.overrides))
    if options.kernel is None:  # the library's own work is what is timed then
        task = replace(task, policy=replace(task.policy, library_operators=(EVERYTHING,)))
    source = options.kernel.read_text() if options.kernel else as_candidate(task)
    with TOOLCHAINS[options.toolchain]() as toolchain:
        report(measure(toolchain, task, source, options.runs), is_itself=options.kernel is None)


def as_candidate(task: Task) -> str:
    """The task's own module under the name a candidate has."""
    return re.sub(r"\bModel\b", "ModelNew", task.source)


def measure(toolchain: Evaluator, task: Task, source: str, runs: int) -> list[TimingResult]:
    """Every run in fresh processes with fresh inputs, each told as it ends."""
    found: list[TimingResult] = []
    for number in range(runs):
        started = time.monotonic()
        result = toolchain.time(task, source)
        if not isinstance(result, TimingResult):
            raise SystemExit(f"run {number}: {result.verdict}: {result.message}")
        flags = [check_record.check for check_record in result.proofs if check_record.standing is CheckOutcome.FLAGGED]
        low, high = result.speedup_interval
        print(
            f"run {number:3}: {result.speedup:.4f} ({low:.4f} to {high:.4f}), {result.latency_ms:.4g} ms, "
            f"{len(result.candidate_ms)} pairs, {time.monotonic() - started:.1f} s {' '.join(flags)}",
            flush=True,
        )
        found.append(result)
    return found


def report(found: list[TimingResult], *, is_itself: bool) -> None:
    """Rates of false claims, and how wide and how far apart the intervals are."""
    neighbours = list(itertools.pairwise(found))
    wrong = sum(is_improvement(new, old) for old, new in neighbours)
    print(f"improvements claimed on the run before: {_share(wrong, len(neighbours))}")
    anyone = list(itertools.permutations(found, 2))
    print(
        f"between any two runs:                   {_share(sum(is_improvement(a, b) for a, b in anyone), len(anyone))}"
    )
    if is_itself:
        outside = sum(not low <= 1.0 <= high for low, high in (one.speedup_interval for one in found))
        print(f"intervals that leave out one:           {_share(outside, len(found))}")
    speedups = [one.speedup for one in found]
    noises = sorted(one.noise for one in found)
    middle = statistics.median(speedups)
    spread = statistics.stdev(speedups) / middle if len(found) > 1 else 0.0
    print(f"half widths: median {statistics.median(noises):.2%}, largest {noises[-1]:.2%}")
    print(f"speed-ups:   median {middle:.4f}, standard deviation {spread:.2%} from run to run")


def _share(count: int, total: int) -> str:
    return f"{count} of {total} ({count / max(total, 1):.1%})"


if __name__ == "__main__":
    main()
