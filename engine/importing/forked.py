"""The beginning of a run that was forked: the kernel it took over, to be judged here like any other."""

from __future__ import annotations

from engine.bench import Bench
from engine.steps.candidates import create_candidate
from storage import events as ev
from storage.forks import Fork
from storage.records import Origin, StepKind


def take_over_kernel(bench: Bench) -> None:
    """Journal the kernel that a fork begins with, once, whatever kills the engine. Nothing in a run that is no fork."""
    fork, history = bench.history.settings.forked_from, bench.history
    if fork is None or history.steps_finished > 0:
        return
    bench.step = 1
    if history.in_flight is None:
        bench.emit(ev.StepStarted(1, StepKind.SUBMIT, 0, None))
    create_candidate(
        bench, bench.blobs.get(fork.source_blob), parent_id=None, base_id=None, origin=Origin.FORKED, repair=0,
        summary=f"kernel {fork.number} of {fork.run_id}",
    )  # fmt: skip
    if not any(isinstance(entry.event, ev.Imported) for entry in bench.journal.entries):
        bench.emit(_told(fork, next(iter(history.attempts))))
    bench.emit(ev.StepFinished(1, StepKind.SUBMIT, 0.0, "created"))


def _told(fork: Fork, candidate_id: str) -> ev.Imported:
    place = f"{fork.candidate_id} of run {fork.run_id}"
    return ev.Imported(
        candidate_id, place, "passed" if fork.latency_ms else "", fork.latency_ms, fork.baseline_latency_ms
    )
