"""One sentence per step, for people who follow a run. Knows the facts of a step, not where they are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from storage.records import StepKind, Verdict


@dataclass(frozen=True, slots=True)
class Move:
    """A step and all that came of it. Numbers are those of kernels, counted from 1 in the order they were made."""

    seq: int
    step: int
    kind: str
    depth: int
    candidate_id: str | None
    started_at: float
    seconds: float | None
    outcome: str | None
    is_in_flight: bool
    number: int | None
    made_id: str | None
    made_number: int | None
    summary: str | None
    verdict: Verdict | None
    message: str | None
    max_error: float | None
    tolerance: float | None
    speedup: float | None
    latency_ms: float | None
    baseline: str | None
    bound: str | None
    failure: str | None
    patch_reason: str | None
    said: str | None
    said_problem: str | None
    is_profile_exposed: bool


# A step that a strategy of its own names.
OTHER_STEP = "The model is at the step {name}: {kernel}"
_DOING: Mapping[str, str] = {
    StepKind.SYNTHESISE: "The model is writing {a_kernel}",
    StepKind.COMPILE: "Compiling {kernel}",
    StepKind.CHECK: "Checking {kernel} against the reference",
    StepKind.TIME: "Timing {kernel}",
    StepKind.PROFILE: "Profiling {kernel}",
    StepKind.DIAGNOSE: "The model is diagnosing {kernel}",
    StepKind.REPAIR: "The model is repairing {kernel}",
    StepKind.OPTIMISE: "The model is optimising {kernel}",
    StepKind.SUBMIT: "Reading a submitted kernel",
    "judge": "The model is judging {kernel}",
    "rewrite": "The model is rewriting {kernel}",
}


def sentence(m: Move) -> str:
    """What the step does, or what came of it."""
    if m.outcome in (None, "interrupted", "dropped", "skipped"):
        a_kernel = "the first kernel" if not m.depth and m.number is None else "a kernel from scratch"
        doing = _DOING.get(m.kind, OTHER_STEP).format(kernel=_kernel(m.number), a_kernel=a_kernel, name=m.kind)
        return _with(doing, m.outcome)
    if m.said_problem:
        return f"Reply about {_kernel(m.number)} could not be read: {m.said_problem}"
    if m.said:
        return f"{m.kind.capitalize()} on {_kernel(m.number)}: {m.said}"
    match m.kind:
        case StepKind.COMPILE | StepKind.CHECK:
            return _judged(m)
        case StepKind.TIME:
            return _timed(m)
        case StepKind.PROFILE:
            return _profiled(m)
        case StepKind.DIAGNOSE:
            return _with(f"Diagnosed {_kernel(m.number)}", "" if m.outcome == "written" else m.outcome)
        case _:
            return _edited(m)


def _kernel(number: int | None) -> str:
    return f"kernel {number}" if number else "the kernel"


def _with(text: str, reason: str | None) -> str:
    return f"{text}: {reason}" if reason else text


def _judged(m: Move) -> str:
    kernel = _kernel(m.number).capitalize()
    if m.verdict is None:
        return f"{m.kind.capitalize()} of {_kernel(m.number)}: {m.outcome}"
    if m.verdict is Verdict.PASSED and m.kind == StepKind.COMPILE:
        return f"{kernel} compiles"
    if m.verdict is Verdict.PASSED:
        bounds = f"largest error {m.max_error:.1e}, {m.tolerance:.1e} allowed" if m.max_error and m.tolerance else ""
        return _with(f"{kernel} is correct", bounds)
    return _with(f"{kernel} {_FAILED[m.verdict]}", m.message)


_FAILED = {
    Verdict.COMPILE_ERROR: "does not compile",
    Verdict.INCORRECT: "gives wrong results",
    Verdict.RUNTIME_ERROR: "crashed",
    Verdict.TIMEOUT: "took too long",
    Verdict.OUT_OF_MEMORY: "ran out of memory",
    Verdict.REFUSED: "was refused",
}


def _timed(m: Move) -> str:
    if m.verdict not in (None, Verdict.PASSED):
        return _judged(m)
    if m.speedup is None or m.latency_ms is None:
        return f"Timing of {_kernel(m.number)}: {m.outcome}"
    return f"{_kernel(m.number).capitalize()} takes {m.latency_ms:.4g} ms, {m.speedup:.2f}× over {m.baseline}"


def _profiled(m: Move) -> str:
    if m.failure:
        return f"Profiling {_kernel(m.number)} failed: {m.failure}"
    return f"Profiled {_kernel(m.number)}" + (f": bound by {m.bound}" if m.bound else "")


_MADE_BY = {StepKind.REPAIR: "Repaired", StepKind.OPTIMISE: "Optimised", "rewrite": "Rewrote"}


def _edited(m: Move) -> str:
    if m.made_number is None:
        reason = m.patch_reason or m.outcome
        if m.kind == StepKind.SYNTHESISE:
            return _with("The reply holds no kernel", reason)
        if m.kind == "rewrite":
            return f"The reply holds no rewrite of {_kernel(m.number)}"
        return _with(f"No edit of {_kernel(m.number)} applied", reason)
    if m.kind == StepKind.SUBMIT:
        made_from = f", an edit of {_kernel(m.number)}" if m.number else ""
        return _with(f"Kernel {m.made_number} submitted by hand{made_from}", m.summary)
    seen = " with its profile" if m.is_profile_exposed else ""
    if m.kind == StepKind.SYNTHESISE:
        return _with(f"Wrote kernel {m.made_number}{seen}", m.summary)
    return _with(f"{_MADE_BY.get(m.kind, 'Changed')} {_kernel(m.number)} into kernel {m.made_number}{seen}", m.summary)
