"""Evaluates one kernel file with the real toolchain and says what became of it. Knows no kernel in particular."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from engine.errors import EngineError
from engine.evaluator.machine.worker_limits import GIB, Limits, Times
from engine.evaluator.sandbox.probe import probe
from engine.evaluator.toolchains.cpu import CpuToolchain
from engine.evaluator.toolchains.evaluating import evaluate
from storage.results.evaluation_results import TimingResult
from storage.results.vocabulary import Verdict
from tests.cheats import leftovers
from tests.cheats.declaration import Declaration, task_of

TIMES = Times(build_s=30.0, import_s=3.0, call_s=2.0, reference_s=20.0, check_s=1.0, timing_s=0.5)
LIMITS = Limits(address_space=8 * GIB)
OUR_FAILURE = "our own failure"


class Mode(StrEnum):
    """With screening as the product does it, or the dynamic checks alone."""

    WHOLE = "with screening"
    DYNAMIC = "without screening"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one file. `verdict` is OUR_FAILURE where the toolchain itself gave up."""

    verdict: str
    message: str
    speedup: float | None
    seconds: float
    left: tuple[str, ...] = ()


@functools.cache
def walls_hold() -> bool:
    """True where files that need isolation may run: it has been set up and tried."""
    return probe().is_full


def run(toolchain: CpuToolchain, scratch: Path, declared: Declaration, mode: Mode) -> Outcome:
    """Evaluate one file, then look for what it left behind."""
    before = leftovers.processes(scratch)
    started = time.monotonic()
    try:
        verdict, message, speedup = (_whole if mode is Mode.WHOLE else _dynamic)(toolchain, declared)
    except EngineError as error:
        verdict, message, speedup = OUR_FAILURE, str(error), None
    seconds = time.monotonic() - started
    return Outcome(verdict, message, speedup, seconds, tuple(leftovers.of(scratch, before)))


def complaints(declared: Declaration, outcome: Outcome, mode: Mode) -> list[str]:
    """What is not as the file declares; empty when all is well."""
    right = declared.verdicts if mode is Mode.WHOLE else declared.without
    found = [f"left behind: {thing}" for thing in outcome.left]
    if outcome.verdict not in right:
        found.append(f"{outcome.verdict} instead of {' or '.join(right)}: {outcome.message[:600]}")
    elif outcome.verdict == Verdict.PASSED:
        found += _speed_complaints(declared, outcome)
    elif declared.says and not any(word in outcome.message.lower() for word in declared.says):
        found.append(f"the message does not say why ({' or '.join(declared.says)}): {outcome.message[:600]}")
    return found


def _speed_complaints(declared: Declaration, outcome: Outcome) -> list[str]:
    if outcome.speedup is None:
        return ["it passed without having been timed"]
    if declared.most is not None and outcome.speedup > declared.most:
        return [f"credited with {outcome.speedup:.3g} times the baseline's speed, at most {declared.most:g} is true"]
    return []


def _whole(toolchain: CpuToolchain, declared: Declaration) -> tuple[str, str, float | None]:
    answer = evaluate(toolchain, task_of(declared), declared.source)
    return str(answer["verdict"]), str(answer["message"]), answer["speedup"]


def _dynamic(toolchain: CpuToolchain, declared: Declaration) -> tuple[str, str, float | None]:
    """Screening is part of compiling, so checking and timing alone leave it out."""
    task = task_of(declared)
    checked = toolchain.check(task, declared.source)
    if checked.verdict is not Verdict.PASSED:
        return str(checked.verdict), checked.message, None
    timed = toolchain.time(task, declared.source)
    if isinstance(timed, TimingResult):
        return str(Verdict.PASSED), "", timed.speedup
    return str(timed.verdict), timed.message, None
