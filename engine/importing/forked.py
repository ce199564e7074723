"""The beginning of a run that was forked: the kernel it took over, to be judged here like any other."""

from __future__ import annotations

from engine.actions import NewCandidate
from engine.context import RunContext
from engine.steps.candidates import create_candidate
from storage import events as ev
from storage.forks import Fork
from storage.records import Origin, StepKind


def take_over_kernel(context: RunContext) -> None:
    """Journal the kernel that a fork begins with, once, whatever kills the engine. Nothing in a run that is no fork."""
    fork, record = context.record.settings.forked_from, context.record
    if fork is None or record.steps_finished > 0:
        return
    context.step = 1
    if record.in_flight is None:
        context.emit(ev.StepStarted(1, StepKind.SUBMIT, 0, None))
    makes = NewCandidate(Origin.FORKED, None, 0, "", f"kernel {fork.number} of {fork.run_id}")
    create_candidate(context, context.blobs.get(fork.source_blob), None, makes, makes.untitled)
    if not any(isinstance(entry.event, ev.Imported) for entry in context.journal.entries):
        context.emit(_told(fork, next(iter(record.candidates))))
    context.emit(ev.StepFinished(1, StepKind.SUBMIT, 0.0, "created"))


def _told(fork: Fork, candidate_id: str) -> ev.Imported:
    place = f"{fork.candidate_id} of run {fork.run_id}"
    return ev.Imported(
        candidate_id, place, "passed" if fork.latency_ms else "", fork.latency_ms, fork.baseline_latency_ms
    )
