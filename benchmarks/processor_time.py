"""Where honest kernels spend the processor's time, as the evaluator samples it: what its bound must let pass.

python -m benchmarks.processor_time                              the suite's honest files and every recorded CPU kernel
python -m benchmarks.processor_time --match honest/reversed_sum  one of them
Prints a line per kernel and the largest share in other libraries.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.recorded_kernels import kernels_of
from engine.evaluator import tasks
from engine.evaluator.checks.processor_time import CHECK
from engine.evaluator.machine.worker_limits import Times
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.cpu import CpuToolchain
from engine.search.llm.recording import recorded_settings, recorded_tasks, shipped_recording
from storage.results.evaluation_results import TimingResult
from tests.cheats import declaration, running
from tests.cheats.declaration import KERNELS

OTHERS = re.compile(r"([\d.]+)% in others")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--match", default="", help="only kernels whose name this expression finds")
    parser.add_argument("--seconds", type=float, default=1.0, help="of timing, each")
    options = parser.parse_args()
    largest, count = 0.0, 0
    times = Times(timing_s=options.seconds)
    with (
        tempfile.TemporaryDirectory(prefix="tilewright.") as folder,
        CpuToolchain(Path(folder), times, running.LIMITS) as toolchain,
    ):
        for name, task, source in kernels():
            if re.search(options.match, name):
                told = seen(toolchain, task, source)
                largest, count = max(largest, *map(float, OTHERS.findall(told)), 0.0), count + 1
                print(f"{name:48} {told}", flush=True)
    print(f"{count} kernels, at most {largest:.1f} % in other libraries")


def kernels() -> Iterator[tuple[str, Task, str]]:
    """Name, task and source of each."""
    for declared in declaration.in_folder(KERNELS):
        if declared.is_honest:
            yield declared.name, declaration.task_of(declared), declared.source
    for name in recorded_tasks("cpu", "cutegen"):
        path = shipped_recording(name)
        assert path is not None
        task = tasks.find(name).task("cpu", recorded_settings(path).get("sizes", {}))
        for number, source in enumerate(kernels_of(path)):
            yield f"recorded/{name} {number}", task, source


def seen(toolchain: CpuToolchain, task: Task, source: str) -> str:
    """The check's words, or why there are none."""
    timed = toolchain.time(task, source)
    if not isinstance(timed, TimingResult):
        return f"{timed.verdict}: {timed.message[:150]!r}"
    return next(record.detail for record in timed.proofs if record.check == CHECK)


if __name__ == "__main__":
    main()
