"""Whether kernels can be judged on tasks, file by file. Handed the way to a toolchain; runs references, no kernel."""

from __future__ import annotations

import json
import shutil
import textwrap
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from engine import examined
from engine.cli import given
from engine.cli.subcommands import FAILED, OK, chosen_policy
from engine.errors import EngineError, TaskError, ToolchainError
from engine.evaluator import fitting, tasks
from engine.evaluator.fitting import CostMeter
from engine.evaluator.request import Evaluator
from engine.evaluator.tasks import FolderEntry, Size, Task, TaskFile, problems
from engine.evaluator.toolchain_table import HOST, device_of
from storage import codec, untrusted
from storage.results.examination import Examination, Standing
from storage.results.vocabulary import KernelClass

WIDTH, INDENT = 100, 16
TASK_GIVEN = "-"
# What a module that needs files or the network of this machine ends in, where it is shown none.
OF_THE_SANDBOX = ("FileNotFoundError", "PermissionError", "NotADirectoryError", "ImportError", "ModuleNotFoundError",
                  "gaierror", "ConnectionError", "URLError", "OSError")  # fmt: skip
IN_THE_SANDBOX = "Before a run is started a module is tried in a sandbox, without this machine's files and network"
ALIKE = 6  # tensors of one kind that are named


class Outcome(StrEnum):
    """What became of a file: the standings of an examination, and what keeps a file from being examined."""

    DECIDED = Standing.DECIDED
    UNDECIDABLE = Standing.UNDECIDABLE
    NOTHING_TO_DO = Standing.NOTHING_TO_DO
    HIDDEN = examined.HIDDEN
    FAILS = "fails"
    NO_TASK = "no task"
    NOT_EXAMINED = examined.NOT_EXAMINED


@dataclass(frozen=True, slots=True)
class Linted:
    """One file. `why` is a sentence; `sizes` are those it was examined at, `smaller` the ones of them that were made
    smaller for this processor."""

    path: Path
    outcome: Outcome
    why: str = ""
    remedies: tuple[str, ...] = ()
    examination: Examination | None = None
    kernel_class: KernelClass | None = None
    sizes: Mapping[str, Size] = field(default_factory=dict)
    smaller: Mapping[str, Size] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """The outcome as plain values for JSON."""
        examination = self.examination
        return {
            "file": str(self.path), "outcome": str(self.outcome), "why": self.why, "remedies": list(self.remedies),
            "class": self.kernel_class, "sizes": dict(self.sizes), "made_smaller": dict(self.smaller),
            "allowed": examination.allowed if examination else None, "idle": examination.idle if examination else None,
            "varied": dict(examination.varied) if examination else {},
            "stays": dict(examination.stays) if examination else {},
            "remarks": list(examination.remarks) if examination else [],
        }  # fmt: skip


def lint(options: Namespace, open_toolchain: Callable[[Namespace], Evaluator]) -> int:
    """Every file that is named: 0 where each is decided."""
    given = _given() if options.folder == TASK_GIVEN else None
    entries = [] if given else _entries(options.folder)
    linted = list[Linted]()
    toolchain = open_toolchain(options)
    try:
        with CostMeter() as meter:
            if given is not None:
                linted.append(
                    _of_task(Linted(Path(given.name), Outcome.FAILS), given, options.toolchain, toolchain, meter)
                )
            for entry in entries:
                linted.append(_linted(entry, options, toolchain, meter))
                if not options.json:
                    print("\n".join(lines(linted[-1], width())), flush=True)
    finally:
        toolchain.close()
    print(json.dumps([file.plain() for file in linted]) if options.json else f"\n{summary(linted)}")
    return OK if all(file.outcome is Outcome.DECIDED for file in linted) else FAILED


def _given() -> Task:
    """A task with its sizes and policy as JSON on standard input, as a server hands it over."""
    try:
        task: Task = codec.from_plain(Task, untrusted.json_value(given.text(given.STANDARD_INPUT), "it", given.LIMITS))
    except ValueError as error:
        raise EngineError(f"standard input holds no task: {error}") from error
    return task


def _entries(name: str | None) -> list[FolderEntry]:
    if name is None:
        return [FolderEntry(file.path, file) for file in tasks.shipped()]
    if Path(name).is_dir() and not problems.definition_in(Path(name)):
        return tasks.in_folder(Path(name))
    try:
        file = tasks.find(name)
    except TaskError as error:
        if not Path(name).exists():
            raise
        return [FolderEntry(Path(name), None, str(error))]
    return [FolderEntry(file.path, file)]


def _linted(entry: FolderEntry, options: Namespace, toolchain: Evaluator, meter: CostMeter) -> Linted:
    """What becomes of one file, whatever is wrong with it."""
    if entry.task is None:
        return Linted(entry.path, Outcome.NO_TASK, entry.reason)
    about = Linted(entry.path, Outcome.FAILS, kernel_class=entry.task.kernel_class or entry.task.guessed_class)
    try:
        task, smaller = _task(entry.task, options, meter)
    except TaskError as error:
        return replace(about, outcome=Outcome.NO_TASK, why=str(error))
    return _of_task(replace(about, smaller=smaller), task, options.toolchain, toolchain, meter)


def _of_task(about: Linted, task: Task, name: str, toolchain: Evaluator, meter: CostMeter) -> Linted:
    about = replace(about, sizes=task.sizes)
    try:
        if why := _too_large(task, name, meter):
            return replace(about, outcome=Outcome.NOT_EXAMINED, why=why)
        return _examined(about, task, toolchain)
    except TaskError as error:
        if any(word in str(error) for word in OF_THE_SANDBOX):
            return replace(about, outcome=Outcome.NOT_EXAMINED, why=f"{error}. {IN_THE_SANDBOX}")
        return replace(about, why=str(error))
    except ToolchainError as error:
        return replace(about, outcome=Outcome.NOT_EXAMINED, why=str(error))


def _task(file: TaskFile, options: Namespace, meter: CostMeter) -> tuple[Task, dict[str, Size]]:
    """The task as a run with the same words would have it, and the sizes that were made smaller for it."""
    file = replace(file, policy=tasks.policy_with(file.policy, **chosen_policy(options)))
    kept: dict[str, Size] = dict(options.overrides)
    is_small = device_of(options.toolchain) != HOST or file.is_shipped
    smaller = {} if is_small else fitting.sizes_that_fit(file, kept, meter)
    return file.task(options.toolchain, {**smaller, **kept}), smaller


def _too_large(task: Task, toolchain: str, meter: CostMeter) -> str:
    if device_of(toolchain) != HOST:
        return ""
    backward = task.policy.backward
    # Kept, so that whoever judges on the task need not find it out once more: that takes two seconds.
    needed = fitting.remembered(
        task.source, lambda: fitting.bytes_by(meter, task.source, backward=backward), backward=backward
    )
    return fitting.refusal(needed, fitting.free_bytes(), task.sizes) if needed else ""


def _examined(about: Linted, task: Task, toolchain: Evaluator) -> Linted:
    """The first of several workloads that is not decided tells; else the last."""
    examination = Examination(Standing.DECIDED)
    for sizes, workload in tasks.workloads.each(task):
        examination = toolchain.examine_confined(workload)
        if not examination.is_decided:
            at = f"With {tasks.workloads.named(sizes)}: " if sizes else ""
            about = replace(about, why=f"{at}{examination.why}")
            break
        if hidden := examination.hidden_unless(workload.policy.imports):
            return replace(about, outcome=Outcome.HIDDEN, why=hidden.why, remedies=hidden.remedies)
    return replace(about, outcome=Outcome(examination.standing), remedies=examination.remedies, examination=examination)


def width() -> int:
    """Columns of the listing."""
    return min(WIDTH, shutil.get_terminal_size((WIDTH, 0)).columns)


def lines(linted: Linted, columns: int) -> Iterator[str]:
    """What a person reads of one file."""
    yield f"{linted.outcome:{INDENT}}{linted.path}"
    for sentence in _sentences(linted):
        margin = " " * INDENT
        yield textwrap.fill(
            sentence, columns, initial_indent=margin, subsequent_indent=f"{margin}  ", break_on_hyphens=False
        )


def _sentences(linted: Linted) -> Iterator[str]:
    if linted.why:
        yield f"{linted.why[0].upper()}{linted.why[1:]}".rstrip(".") + "."
    for remedy in linted.remedies:
        yield f"- what mends it: {remedy}"
    if linted.smaller:
        yield f"sizes made smaller for this processor: {tasks.workloads.named(linted.smaller)}"
    if (examination := linted.examination) is None:
        return
    if examination.is_decided:
        allowed, idle = _figure(examination.allowed), _figure(examination.idle)
        yield f"allowed error {allowed}; an answer of zeros or of other inputs is off by {idle} at least"
        yield from _tensors("weights that vary: ", examination.varied)
        yield from _tensors("stays as constructed: ", examination.stays)
    yield from (f"note: {remark}" for remark in examination.remarks)


def _tensors(head: str, kinds: Mapping[str, str]) -> Iterator[str]:
    """Names by what holds for them, many of one kind as their number."""
    alike: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        alike.setdefault(kind, []).append(name)
    for kind, names in alike.items():
        rest = f" and {len(names) - ALIKE} more" if len(names) > ALIKE else ""
        yield f"{head}{', '.join(names[:ALIKE])}{rest} ({kind})"


def _figure(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2g}"


def summary(linted: list[Linted]) -> str:
    """How many files there are of each outcome."""
    counts = Counter(file.outcome for file in linted)
    outcomes = ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome])
    smaller = sum(bool(file.smaller) for file in linted)
    note = f"\n{smaller} at smaller sizes than written: --set NAME=NUMBER chooses others." if smaller else ""
    return f"{len(linted)} file{'s' * (len(linted) != 1)}: {outcomes}.{note}"
