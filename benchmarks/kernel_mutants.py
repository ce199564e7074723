"""How many kernels that mean something else does the evaluator catch? Mutants of every shipped task, and of a folder.

    python -m benchmarks.kernel_mutants [--folder KERNELBENCH] [--match REGEX] [--mutations NAME,NAME] [--toolchain cpu]
        [--seconds 4] [--limit 3000] [--output TABLE.md]

A mutant is the reference's own text as a candidate with one change (`benchmarks/meaning`), judged under a policy that
leaves every operator to PyTorch, at sizes at which a call takes milliseconds. Whether it changes the answer is found
here, in float64 and with weights away from those of constructors: one that does not is equivalent, one that fails there
or is not let in by the screening is no mutant, and neither counts. The reference itself must pass. The table is written
after each file; after `--limit` seconds in all the files that are left are named as not reached.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from benchmarks.kernelbench_files import small
from benchmarks.meaning import making
from benchmarks.meaning.making import Mutant
from engine.errors import EngineError
from engine.evaluator import sandbox, tasks
from engine.evaluator.fitting import CostMeter
from engine.evaluator.machine.worker_limits import Times
from engine.evaluator.request import Evaluator
from engine.evaluator.tasks import Task, TaskFile
from engine.evaluator.toolchains.cpu import CpuToolchain
from engine.evaluator.toolchains.cuda import CudaToolchain
from storage.results.vocabulary import Verdict

ROOT = Path(__file__).resolve().parent.parent
TRUTH_S = 300


class Fate(StrEnum):
    """What became of a mutant."""

    CAUGHT = "caught"
    MISSED = "missed"
    EQUIVALENT = "equivalent"
    NO_MUTANT = "no mutant"


@dataclass(frozen=True, slots=True)
class Judged:
    """One mutant of one file: its fate, how far its answer is from the reference's at most, and why."""

    file: str
    mutant: Mutant
    fate: Fate
    difference: float = 0.0
    why: str = ""

    def __str__(self) -> str:
        change = " ".join(self.mutant.change.split()).replace("|", "\\|")
        return f"| {self.file} | {self.mutant.mutation} | `{change[:200]}` | {self.difference:.2g} | {self.why} |"


@dataclass(slots=True)
class Found:
    """Every mutant so far, and the files of which nothing can be said."""

    mutants: list[Judged] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def table(self) -> str:
        """By mutation, then what was missed, then what was not judged."""
        mutations = sorted({one.mutant.mutation for one in self.mutants})
        rows = [_row(name, [one for one in self.mutants if one.mutant.mutation == name]) for name in mutations]
        missed = [str(one) for one in self.mutants if one.fate is Fate.MISSED]
        return "\n".join(
            [
                "| mutation | made | no mutant | equivalent | caught | missed |", "|---|---|---|---|---|---|", *rows,
                _row("all", self.mutants), "", "Missed:", "",
                "| file | mutation | change | largest difference | allowed |", "|---|---|---|---|---|", *missed,
                *(["", "Not judged:", "", *(f"- {line}" for line in self.left_out)] if self.left_out else []), "",
            ]
        )  # fmt: skip

    def __str__(self) -> str:
        caught, missed = (_count(self.mutants, fate) for fate in (Fate.CAUGHT, Fate.MISSED))
        return f"{caught} of {caught + missed} mutants that change the answer caught"


def _row(name: str, found: Sequence[Judged]) -> str:
    counts = [_count(found, fate) for fate in (Fate.NO_MUTANT, Fate.EQUIVALENT, Fate.CAUGHT, Fate.MISSED)]
    return f"| {name} | {len(found)} | {' | '.join(map(str, counts))} |"


def _count(found: Iterable[Judged], fate: Fate) -> int:
    return sum(one.fate is fate for one in found)


def of_file(name: str, task: Task, wanted: Sequence[str], toolchain: Evaluator) -> Iterator[Judged]:
    """Every mutant of one task.

    Raises:
        EngineError: the reference cannot be judged, or does not pass as it is.
    """
    if fault := _fault_of_reference(task, toolchain):
        raise EngineError(f"its own reference does not pass: {fault}")
    mutants = making.mutants(task.source, wanted)
    for mutant, told in zip(mutants, truths(task.source, mutants), strict=True):
        if isinstance(told, str):
            yield Judged(name, mutant, Fate.NO_MUTANT, why=told)
            continue
        difference, allowed = told
        if difference <= allowed:
            yield Judged(name, mutant, Fate.EQUIVALENT, difference)
        else:
            yield replace(_judged(name, mutant, task, toolchain), difference=difference)


def _fault_of_reference(task: Task, toolchain: Evaluator) -> str:
    plain = making.unchanged(task.source)
    built = toolchain.compile(task, plain)
    if not built.is_ok:
        return built.diagnostics or str(built.verdict)
    checked = toolchain.check(task, plain)
    return "" if checked.verdict is Verdict.PASSED else checked.message or str(checked.verdict)


def _judged(name: str, mutant: Mutant, task: Task, toolchain: Evaluator) -> Judged:
    built = toolchain.compile(task, mutant.source)
    if not built.is_ok:
        return Judged(name, mutant, Fate.NO_MUTANT, why=built.diagnostics[:200])
    checked = toolchain.check(task, mutant.source)
    is_missed = checked.verdict is Verdict.PASSED
    why = f"{checked.tolerance or 0:.2g}" if is_missed else f"{checked.verdict}: {checked.message[:100]}"
    return Judged(name, mutant, Fate.MISSED if is_missed else Fate.CAUGHT, why=why)


def truths(reference: str, mutants: Sequence[Mutant]) -> list[list[float] | str]:
    """What a child finds of each mutant; where it ends or takes too long, the rest is not known."""
    command = [sys.executable, "-m", "benchmarks.meaning.truth"]
    question = json.dumps([reference, [mutant.source for mutant in mutants]]) + "\n"
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=sandbox.environment(1),
    ) as child:  # fmt: skip
        try:
            out, _ = child.communicate(question, timeout=TRUTH_S)
        except subprocess.TimeoutExpired:
            child.kill()
            out, _ = child.communicate()
    told = [json.loads(line) for line in out.splitlines() if line.endswith(("]", '"'))]
    return [*told, *["the truth about it was not found"] * (len(mutants) - len(told))]


def judge(options: argparse.Namespace, found: Found) -> Iterator[str]:
    """A line for each file; what is found is added as it comes."""
    times = Times(call_s=20.0, reference_s=60.0, check_s=options.seconds, timing_s=options.seconds)
    kind = CpuToolchain if options.toolchain == "cpu" else CudaToolchain
    deadline = time.monotonic() + options.limit
    with CostMeter() as meter, kind(times=times) as toolchain:
        for name, file in _files(options):
            if time.monotonic() > deadline:
                found.left_out.append(f"{name}: not reached, {options.limit:.0f} s were spent")
                continue
            own: list[Judged] = []
            try:
                policy = tasks.policy_with(file.policy, "all")
                task = replace(file.task(options.toolchain, small(file, meter)), policy=policy)
                own.extend(of_file(name, task, options.mutations, toolchain))
            except EngineError as error:
                found.left_out.append(f"{name}: {' '.join(str(error).split())[:300]}")
            found.mutants += own
            yield f"{name}: {', '.join(f'{_count(own, fate)} {fate}' for fate in Fate)}"


def _files(options: argparse.Namespace) -> Iterator[tuple[str, TaskFile]]:
    for file in tasks.shipped():
        if re.search(options.match, f"tasks/{file.path.stem}"):
            yield f"tasks/{file.path.stem}", file
    for entry in tasks.in_folder(options.folder) if options.folder else []:
        name = str(entry.path.relative_to(options.folder))
        if entry.task and re.search(options.match, name):
            yield name, entry.task


def main() -> None:
    """Write the table as it grows, and a last line that counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="files in the KernelBench convention, beside the shipped tasks")
    parser.add_argument("--match", default="", help="only files whose name (tasks/relu, level1/...) this finds")
    parser.add_argument("--mutations", type=lambda text: text.split(","), default=[], metavar="NAME,NAME")
    parser.add_argument("--toolchain", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--seconds", type=float, default=4.0, help="how long one check tries inputs")
    parser.add_argument("--limit", type=float, default=3000.0, help="seconds in all")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    if unknown := set(options.mutations) - set(making.names()):
        parser.error(f"no mutation {', '.join(sorted(unknown))}; there are {', '.join(making.names())}")
    started, found = time.monotonic(), Found()
    for line in judge(options, found):
        print(line, flush=True)
        if options.output:
            options.output.write_text(found.table())
    print(f"\n{found.table()}\n{found}, {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
