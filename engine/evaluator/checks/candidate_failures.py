"""How a candidate may fail to run, and words for the model about it: what happened, where, what to do. All pure."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from engine.evaluator.build.request import CANDIDATE_FILE
from storage.results.vocabulary import Verdict

TAIL = 1500
_CRASH_LINE = re.compile(rf'File "{re.escape(CANDIDATE_FILE)}", line (\d+) in (\w+)')
_DEVICE_ERROR = re.compile(
    r"CUDA (?:driver )?error: *([^\n]+)|(an illegal memory access was encountered)", re.IGNORECASE
)
_CANDIDATE_LINE = re.compile(r'^ *File "candidate\.py", line \d+, in .*\n.*$', re.MULTILINE)
# In the sandbox there is no management library to ask for the numbers of the message about missing memory.
_DEVICE_MEMORY = ("out of memory", "nvmlInit_v2_() INTERNAL ASSERT", "CUBLAS_STATUS_ALLOC_FAILED")
_DEVICE_HINTS: tuple[tuple[str, str], ...] = (
    (
        "illegal memory access",
        "a kernel left its tensors; check the grid, index ranges and remainders",
    ),
    ("misaligned address", "a vector load or store at an address that is no multiple of its size; check offsets"),
    ("invalid configuration", "the launch asks for a grid or block that is zero or larger than the device allows"),
    (
        "too many resources requested",
        "registers times threads exceed a multiprocessor's; use fewer threads, or __launch_bounds__",
    ),
    (
        "invalid argument",
        "a launch or copy does not take what it was given; more than 48 KB of shared memory needs cudaFuncSetAttribute",
    ),
    ("cluster", "the cluster is larger than the device can place; check its size and the shared memory per block"),
    ("device-side assert", "an index or a condition that the kernel asserts does not hold"),
    ("no kernel image", "the library holds no code for this device; do not pass architecture flags of your own"),
    ("unspecified launch failure", "the kernel crashed; check shared memory indices, barriers and asynchronous copies"),
    ("illegal instruction", "the kernel crashed on an instruction; check descriptors of tensor and copy instructions"),
    ("illegal barrier", "a barrier was used against its rules; check arrival counts and phases"),
    ("hardware stack", "the kernel's stack overflowed or is corrupt; check recursion and local arrays"),
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A verdict that is not PASSED, with its message."""

    verdict: Verdict
    message: str


class TimedCallFailed(Exception):
    """A call of a timing session shows that the candidate may not pass. `check` names the check that broke."""

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


class ComputedElsewhere(CandidateFailed):
    """What was observed of its calls shows that it may not pass."""

    def __init__(self, failure: Failure) -> None:
        super().__init__({"raised": failure.message}, "")
        self.failure = failure


class ContractBroken(CandidateFailed):
    """Its module does not hold what the reference's holds."""

    def __init__(self, failure: Failure) -> None:
        super().__init__({"raised": failure.message}, "")
        self.failure = failure


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
    if isinstance(failed, (ComputedElsewhere, ContractBroken)):
        return failed.failure
    if "missing" in answer:
        return Failure(Verdict.COMPILE_ERROR, str(answer["missing"]))
    if text := answer.get("compiler"):
        return Failure(Verdict.COMPILE_ERROR, f"a kernel does not compile, in {failed.during}:\n{text}")
    if answer.get("is_memory"):
        return Failure(Verdict.OUT_OF_MEMORY, f"out of memory in {failed.during}:\n{answer['trace']}")
    if answer["raised"] == "SystemExit":
        return Failure(Verdict.RUNTIME_ERROR, f"the candidate ended the process with sys.exit in {failed.during}")
    is_static = failed.during == "import" and answer["raised"] in ("SyntaxError", "IndentationError", "TabError")
    verdict = Verdict.COMPILE_ERROR if is_static else Verdict.RUNTIME_ERROR
    if fault := device_fault(str(answer.get("text", "")), str(answer["trace"])):
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
    output = text.strip()[-TAIL:]
    return where + (f"\nIt printed:\n{output}" if output else "")


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


def is_device_memory(text: str) -> bool:
    """True when an exception says that the device's memory does not suffice."""
    return any(sign in text for sign in _DEVICE_MEMORY)


def device_fault(text: str, trace: str) -> str:
    """A device's fault without torch's advice on debugging; an empty text when it is none."""
    fault = _DEVICE_ERROR.search(text)
    if not fault:
        return ""
    name = (fault[1] or fault[2]).strip().rstrip(".")
    hint = next((f": {explanation}" for sign, explanation in _DEVICE_HINTS if sign in name.lower()), "")
    where = "\n".join(match[0] for match in _CANDIDATE_LINE.finditer(trace))
    seen = f"\nIt showed here, and may come from an earlier launch:\n{where}" if where else ""
    return f"CUDA error: {name}{hint}.{seen}"
