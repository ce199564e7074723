"""The step that tries other numbers for what an accepted kernel declares open to tuning. Knows the toolchain seam and
the journal; which variant is tried next and which is kept is decided in `storage.run.tuning`.

The kernel's step index then ends with the tuned version, whatever the method: no strategy asks for it. What is
journaled is never done again, so an engine that is killed goes on with the next variant.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engine.evaluator.build import tunables
from engine.evaluator.request import Evaluator
from engine.evaluator.tasks import Task
from engine.search.actions import Action, Conclude, NewCandidate, Tune
from engine.search.context import RunContext
from engine.search.steps.candidates import create_candidate
from storage.results.evaluation_results import CheckResult
from storage.run import events as ev
from storage.run import tuning
from storage.run.record import Candidate, Record
from storage.run.settings import DepthOutcome, Origin, StepKind
from storage.run.tuning import Build, Judge, Sweep, Variant, VariantEvent

MOST_BUILDS = 8  # at a time; each is a compiler that may take gigabytes


def tuned_first(record: Record, action: Action, source: Callable[[Candidate], str]) -> Action:
    """Before a step index ends with a kernel that declares tunables, its sweep; then the end, with what was kept."""
    if not isinstance(action, Conclude) or action.outcome is not DepthOutcome.ACCEPTED or not record.settings.tune:
        return action
    kernel = record.candidates.get(action.candidate_id or "")
    if kernel is None or kernel.timed is None or kernel.created.origin is Origin.TUNED:
        return action
    if kernel.candidate_id not in record.swept and tunables.read(source(kernel)).tunables:
        return Tune(action.index, kernel.candidate_id)
    child = tuned_from(record, kernel)
    return replace(action, candidate_id=child.candidate_id) if child else action


def tuned_from(record: Record, kernel: Candidate) -> Candidate | None:
    """The tuned version of a kernel, where its sweep has kept one."""
    for candidate in record.candidates.values():
        is_tuned = candidate.created.origin is Origin.TUNED and candidate.created.parent_id == kernel.candidate_id
        if is_tuned and candidate.timed is not None and not candidate.has_failed:
            return candidate
    return None


def tune(context: RunContext, action: Tune) -> str:
    """Carry a sweep to its end, or to that of the run's time.

    Returns the outcome: tuned, or unchanged; or the verdict where the kernel as it was written failed when it was timed
    again. It has then failed, as one does in its first timing, and the method decides what becomes of it.
    """
    kernel = context.candidate(action.about)
    name, source = kernel.candidate_id, context.source(kernel)
    if name not in context.record.sweeps:
        declared = tunables.read(source).tunables
        context.emit(ev.SweepStarted(context.step, action.index, name, declared, context.record.settings.tune))
    sweep = context.record.sweeps[name]
    while (act := sweep.next(width())) is not None and not _is_out_of_time(context):
        context.interrupt()
        for event in carried_out(
            context.toolchain, context.task, source, sweep, act, step=context.step, name=name, judge=context.judge
        ):
            context.emit(event)
    if (failed := sweep.failed_again) is not None:
        if not kernel.has_failed:  # else journaled before the engine was killed
            context.emit(ev.Checked(context.step, name, failed))
        return failed.verdict
    kept = sweep.kept
    if kept is not None:
        _keep(context, kernel, sweep, kept)
    return "tuned" if kept is not None else "unchanged"


def width() -> int:
    """How many variants are built at a time."""
    return max(1, min(len(os.sched_getaffinity(0)), MOST_BUILDS))


def _is_out_of_time(context: RunContext) -> bool:
    """Only the run's time bounds a sweep beside its number of variants: it asks no model."""
    allowed = context.record.budget.wall_s
    spent = context.record.usage.engine_s + time.monotonic() - context.step_began
    return allowed is not None and spent >= allowed


def carried_out(
    toolchain: Evaluator, task: Task, source: str, sweep: Sweep, act: Build | Judge,
    *, step: int = 0, name: str = "", judge: Callable[..., Any] = lambda act, *args: act(*args),
) -> list[VariantEvent]:  # fmt: skip
    """What came of an act on variants of a source: several builds, or one check or timing, which may find the variant
    wrong. `judge` calls the toolchain."""
    if isinstance(act, Build):
        sources = [tunables.with_values(source, values) for _, values in act.wave]
        results = judge(toolchain.compile_all, task, sources)
        return [
            ev.VariantCompiled(step, name, number, values, replace(built, log=""))
            for (number, values), built in zip(act.wave, results, strict=True)
        ]
    timing = toolchain.time_briefly if act.is_brief else toolchain.time
    variant = tunables.with_values(source, sweep.values(act.number))
    result = judge(toolchain.check if act.stage is StepKind.CHECK else timing, task, variant)
    if isinstance(result, CheckResult):
        return [ev.VariantChecked(step, name, act.number, result)]
    return [ev.VariantTimed(step, name, act.number, act.is_brief, result)]


def _keep(context: RunContext, kernel: Candidate, sweep: Sweep, kept: Variant) -> None:
    """Make the best variant a child of the kernel, with the results that it already has."""
    created, record = kernel.created, context.record
    summary = f"tuned: {tuning.changed(sweep.as_written, kept.values)}"
    makes = NewCandidate(
        Origin.TUNED, created.base_id, created.generation, "", summary, created.repair, created.trajectory
    )
    create_candidate(
        context, tunables.with_values(context.source(kernel), kept.values), kernel.candidate_id, makes, summary
    )
    child = next(candidate for candidate in record.candidates.values() if candidate.created.step == context.step)
    assert kept.checked is not None
    assert kept.timed is not None
    if child.compiled is None:
        context.emit(ev.Compiled(context.step, child.candidate_id, kept.compiled, None))
    if child.checked is None:
        context.emit(ev.Checked(context.step, child.candidate_id, kept.checked))
    if child.timed is None:
        context.emit(ev.Timed(context.step, child.candidate_id, kept.timed))
