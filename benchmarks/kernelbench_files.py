"""Every KernelBench file of a folder: does it load, give a prompt, and judge its own reference as a candidate?

    python -m benchmarks.kernelbench_files FOLDER [--toolchain cpu] [--original] [--seconds 2] [--limit 3000]
        [--backward] [--dtype bf16] [--match REGEX] [--output TABLE.md]

The candidate is the reference itself, under a policy that leaves every operator to PyTorch: what is seen is whether a
file can be judged, not how fast a kernel is. Sizes are made small, unless `--original` keeps those of the file. The
table is written after each file; after `--limit` seconds in all the files that are left are named as not reached.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from engine.errors import EngineError
from engine.evaluator import fitting, tasks
from engine.evaluator.fitting import Cost, CostMeter
from engine.evaluator.machine.worker_limits import Times
from engine.evaluator.request import Evaluator
from engine.evaluator.tasks import Size, Task, TaskFile, set_constants
from engine.evaluator.toolchains.cpu import CpuToolchain
from engine.evaluator.toolchains.cuda import CudaToolchain
from engine.search import prompting
from engine.search.steps import briefing
from engine.search.steps.conversation import as_code
from storage.results.policy import DTYPES
from storage.results.vocabulary import Verdict

HEAD = (
    "| file | class | sizes changed | characters of the prompt | verdict | s |"
    " error nearest its tolerance | allowed | why |"
)
RULE = "|---|---|---|---|---|---|---|---|---|"
AS_CANDIDATE = "\n\nclass ModelNew(Model):\n    pass\n"


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one file."""

    file: str
    kernel_class: str = ""
    sizes: str = ""
    prompt: int = 0
    verdict: str = ""
    seconds: float = 0.0
    error: float | None = None
    allowed: float | None = None
    why: str = ""

    def __str__(self) -> str:
        figures = ["" if value is None else f"{value:.2g}" for value in (self.error, self.allowed)]
        why = " ".join(self.why.split()).replace("|", "\\|")[:300]
        cells = [self.file, self.kernel_class, self.sizes, str(self.prompt or ""), self.verdict, f"{self.seconds:.1f}"]
        return f"| {' | '.join([*cells, *figures, why])} |"


def judged(path: str, file: TaskFile, options: argparse.Namespace, meter: CostMeter, toolchain: Evaluator) -> Row:
    """One file from its text to a verdict."""
    started = time.monotonic()
    changed: dict[str, Size] = {} if options.original else small(file, meter)
    policy = tasks.policy_with(file.policy, "all", backward=options.backward or None, dtype=options.dtype)
    row = Row(path, str(file.kernel_class or file.guessed_class), ", ".join(f"{k}={v}" for k, v in changed.items()))
    try:
        task = replace(file.task(options.toolchain, changed), policy=policy)
        row = replace(row, prompt=len(prompt_of(task, options.toolchain)))
        source = task.source + AS_CANDIDATE
        built = toolchain.compile(task, source)
        if not built.is_ok:
            return replace(row, verdict=str(built.verdict), why=built.diagnostics, seconds=time.monotonic() - started)
        checked = toolchain.check(task, source)
    except EngineError as error:
        return replace(row, verdict="cannot be judged", why=str(error), seconds=time.monotonic() - started)
    seconds = time.monotonic() - started
    verdict, why = str(checked.verdict), checked.message
    return replace(row, verdict=verdict, seconds=seconds, error=checked.max_error, allowed=checked.tolerance, why=why)


def small(file: TaskFile, meter: CostMeter) -> dict[str, Size]:
    """Sizes at which a call takes milliseconds on a processor, those that differ from the file's."""

    def measure(sizes: dict[str, Size]) -> Cost | None:
        return meter.cost(set_constants(file.text, sizes, file.path))

    return fitting.smaller(file.constants, lambda sizes: measure(dict(sizes)))


def prompt_of(task: Task, toolchain: str) -> str:
    """The system prompt of a run on the task, and the reference as a first message shows it."""
    slots = briefing.fixed_slots(toolchain, task, None) | {"failure_rules": "", "tunables": ""}
    system = prompting.message("system", "system.md", **{name: slots[name] for name in prompting.slots("system.md")})
    return f"{system.text}\n{as_code(task.source)}"


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """One per file, in order."""
    times = Times(call_s=20.0, reference_s=60.0, check_s=options.seconds, timing_s=options.seconds)
    kind = CpuToolchain if options.toolchain == "cpu" else CudaToolchain
    deadline = time.monotonic() + options.limit
    with CostMeter() as meter, kind(times=times) as toolchain:
        for entry in tasks.in_folder(options.folder):
            name = str(entry.path.relative_to(options.folder))
            if not re.search(options.match, name):
                continue
            if entry.task is None:
                yield Row(name, verdict="no task", why=entry.reason)
            elif time.monotonic() > deadline:
                yield Row(name, verdict="not reached", why=f"{options.limit:.0f} s were spent")
            else:
                yield judged(name, entry.task, options, meter, toolchain)


def main() -> None:
    """Write the table as it grows, and a last line that counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--toolchain", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--original", action="store_true", help="the sizes of the file, and no smaller ones")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long one check tries inputs")
    parser.add_argument("--limit", type=float, default=3000.0, help="seconds in all")
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--dtype", default="", choices=DTYPES)
    parser.add_argument("--match", default="", help="only files whose path this regular expression finds")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    started, found = time.monotonic(), []
    print(HEAD, RULE, sep="\n", flush=True)
    for row in rows(options):
        found.append(row)
        print(row, flush=True)
        if options.output:
            options.output.write_text("\n".join([HEAD, RULE, *map(str, found)]) + "\n")
    passed = sum(row.verdict == Verdict.PASSED for row in found)
    print(f"\n{passed} of {len(found)} files judged their own reference as correct, {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
