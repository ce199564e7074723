"""Writes foreign kernels into a run: each a candidate with its parent and depth. Judges them only when asked to."""

from __future__ import annotations

from collections.abc import Sequence

from engine.actions import Conclude, Evaluate, NewCandidate
from engine.context import RunContext
from engine.importing.kernels import ForeignKernel
from engine.loop import measure_limit, take_step
from engine.steps.candidates import create_candidate
from engine.steps.concluding import conclude
from storage import events as ev
from storage.records import DepthOutcome, Origin, RunState, StepKind, Verdict

NOT_OURS = "imported, not measured here"


def import_kernels(context: RunContext, kernels: Sequence[ForeignKernel], *, is_judged: bool) -> ev.RunEnded:
    """Journal the kernels as a run that has ended and can be resumed from the last of them.

    With `is_judged` each is built, checked and timed here first, by the rules for any kernel. Without, the last depth
    is left open, so that a resumed run judges its kernel before it builds on it.
    """
    if is_judged:
        measure_limit(context)
    last = max(kernel.depth for kernel in kernels)
    base: str | None = None
    for depth in range(last + 1):
        parent = base
        for number, kernel in enumerate(k for k in kernels if k.depth == depth):
            parent = _add(context, kernel, parent, base, number)
            if is_judged:
                _judge(context, parent)
        base = _end_depth(context, depth, parent, base, is_last=depth == last)
    ended = ev.RunEnded(RunState.STOPPED, _sentence(context, len(kernels), is_judged), context.record.best_id)
    context.emit(ended)
    return ended


def _add(context: RunContext, kernel: ForeignKernel, parent: str | None, base: str | None, number: int) -> str:
    kind = StepKind.SYNTHESISE if parent is None else StepKind.REPAIR if number else StepKind.OPTIMISE
    context.step = context.record.steps_finished + 1
    context.emit(ev.StepStarted(context.step, kind, kernel.depth, parent))
    name = f"c{len(context.record.candidates) + 1:03d}"
    makes = NewCandidate(Origin.IMPORTED, base, 0, "", f"imported from {kernel.file}", number)
    create_candidate(context, kernel.source, parent, makes, makes.untitled)
    told = ev.Imported(
        name, kernel.file, kernel.status, kernel.latency_ms, kernel.baseline_latency_ms, kernel.message
    )  # fmt: skip
    context.emit(told)
    context.emit(ev.StepFinished(context.step, kind, 0.0, "created"))
    return name


def _judge(context: RunContext, name: str) -> None:
    depth = context.record.step_index
    for kind in (StepKind.COMPILE, StepKind.CHECK, StepKind.TIME):
        take_step(context, Evaluate(kind, depth, name))
        if context.record.candidates[name].has_failed:
            return


def _end_depth(context: RunContext, depth: int, name: str | None, base: str | None, *, is_last: bool) -> str | None:
    """The base of the next depth: an imported kernel is one whether or not it was judged."""
    candidate = context.record.candidates[name] if name else None
    if candidate and candidate.verdict is Verdict.PASSED and candidate.timed:
        conclude(context, Conclude(depth, DepthOutcome.ACCEPTED, name, base, "imported, correct and timed here"))
    elif not is_last:
        reason = NOT_OURS if candidate is None or candidate.verdict is None else "imported, and not correct here"
        conclude(context, Conclude(depth, DepthOutcome.IMPORTED, name, base, reason))
    return name


def _sentence(context: RunContext, count: int, is_judged: bool) -> str:
    kernels = f"{count} kernels were imported" if count != 1 else "one kernel was imported"
    if is_judged:
        passed = sum(a.verdict is Verdict.PASSED for a in context.record.candidates.values())
        return f"{kernels}, {passed} of them correct here; resume to go on from the last"
    return f"{kernels} and not measured here; resume to judge the last one and go on from it"
