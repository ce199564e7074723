"""Words for the model about a candidate that failed to run: what happened, where, what to do. Pure functions."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from engine.build.request import CANDIDATE_FILE
from engine.evaluation.device import faults
from storage.records import Verdict

TAIL = 1500
_CRASH_LINE = re.compile(rf'File "{re.escape(CANDIDATE_FILE)}", line (\d+) in (\w+)')


@dataclass(frozen=True, slots=True)
class Failure:
    """A verdict that is not PASSED, with its message."""

    verdict: Verdict
    message: str


class TimedCallFailed(Exception):
    """A call of a timing session shows that the candidate may not pass. `check` names the proof that broke."""

    def __init__(self, check: str, failure: Failure) -> None:
        super().__init__(failure.message)
        self.check = check
        self.failure = failure


@dataclass(frozen=True, slots=True)
class FailedBuild:
    """A build that did not succeed, whatever the candidate made of it afterwards."""

    excerpt: str
    log: str
    verdict: Verdict = Verdict.COMPILE_ERROR


class CandidateFailed(Exception):
    """The candidate raised, or is no candidate. `answer` is what its worker told."""

    def __init__(self, answer: Mapping[str, Any], during: str) -> None:
        super().__init__(str(answer.get("raised", answer.get("missing", ""))))
        self.answer = answer
        self.during = during


class Ending(StrEnum):
    """How a worker stopped answering."""

    TIMEOUT = "timeout"
    MEMORY = "memory"
    DIED = "died"
    MISBEHAVED = "misbehaved"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Death:
    """Why there is no answer. `status` is the exit status, negative for a signal."""

    ending: Ending
    status: int
    detail: str
    output: str


class WorkerEnded(Exception):
    """A worker gave no valid answer and has been ended."""

    def __init__(self, death: Death) -> None:
        super().__init__(f"{death.ending} {death.status} {death.detail}\n{death.output}")
        self.death = death


def of_build(failed: FailedBuild) -> Failure:
    """A build that did not succeed."""
    return Failure(failed.verdict, failed.excerpt)


def of_candidate(failed: CandidateFailed) -> Failure:
    """An exception in the candidate, or a file without a candidate in it."""
    answer = failed.answer
    if "missing" in answer:
        return Failure(Verdict.COMPILE_ERROR, str(answer["missing"]))
    if answer.get("is_memory"):
        return Failure(Verdict.OUT_OF_MEMORY, f"out of memory in {failed.during}:\n{answer['trace']}")
    if answer["raised"] == "SystemExit":
        return Failure(Verdict.RUNTIME_ERROR, f"the candidate ended the process with sys.exit in {failed.during}")
    is_static = failed.during == "import" and answer["raised"] in ("SyntaxError", "IndentationError", "TabError")
    verdict = Verdict.COMPILE_ERROR if is_static else Verdict.RUNTIME_ERROR
    if fault := faults.words(str(answer.get("text", "")), str(answer["trace"])):
        return Failure(Verdict.RUNTIME_ERROR, f"{failed.during}: {fault}")
    return Failure(verdict, f"{answer['raised']} in {failed.during}:\n{answer['trace']}")


def of_death(ended: WorkerEnded, during: str) -> Failure:
    """A worker that gave no answer."""
    death = ended.death
    if death.ending is Ending.TIMEOUT:
        return Failure(Verdict.TIMEOUT, f"{during}: {death.detail}; the process was ended{_printed(death)}")
    if death.ending is Ending.MISBEHAVED:
        return Failure(Verdict.REFUSED, f"{during}: the candidate's process broke the rules: {death.detail}")
    if death.ending is Ending.MEMORY:
        return Failure(Verdict.OUT_OF_MEMORY, f"{during}: the process was ended: {death.detail}")
    if _is_memory(death):
        return Failure(Verdict.OUT_OF_MEMORY, f"{during}: the process ran out of memory{_printed(death)}")
    return Failure(Verdict.RUNTIME_ERROR, f"{during}: {_died(death)}{_printed(death)}")


def of_error(error: CandidateFailed | WorkerEnded, during: str, failed_build: FailedBuild | None) -> Failure:
    """Either way of giving no result; a build that failed on the way counts first."""
    if isinstance(error, WorkerEnded):
        return of_death(error, during)
    return of_build(failed_build) if failed_build else of_candidate(error)


def _died(death: Death) -> str:
    if death.status < 0:
        hint = _HINTS.get(-death.status, "")
        return f"the process was killed by {_signal(-death.status)}{hint}"
    return f"the process exited with status {death.status} instead of returning a result"


_HINTS: Mapping[int, str] = {
    11: ": an invalid memory access; check index ranges, tile counts and remainders, and null or freed pointers",
    7: ": an invalid or misaligned memory access; check alignment of vector loads and stores",
    4: ": an instruction this processor does not have",
    8: ": an integer division by zero",
    6: ": abort; an uncaught C++ exception, a failed assertion or a corrupted heap",
}


def _is_memory(death: Death) -> bool:
    return any(sign in death.output for sign in ("bad_alloc", "can't allocate memory", "MemoryError"))


def _printed(death: Death) -> str:
    text, _, crash = _clean(death.output).partition("Fatal Python error:")
    lines = _CRASH_LINE.findall(crash)
    where = f"\nIt was in line {lines[0][0]} of the file ({lines[0][1]})." if lines else ""
    said = text.strip()[-TAIL:]
    return where + (f"\nIt printed:\n{said}" if said else "")


def _clean(text: str) -> str:
    return "".join(char for char in text if char in "\n\t" or char.isprintable())


def printed(output: Any) -> str:
    """What a worker printed, without control characters."""
    return _clean(str(output))


def _signal(number: int) -> str:
    """`SIGSEGV (segmentation fault)`, or the bare number."""
    try:
        return f"{signal.Signals(number).name} ({signal.strsignal(number)})"
    except ValueError:
        return f"signal {number}"
