"""Making a candidate, an immutable source with a parent, and ending the step index that brought one: the base moves or
stays. Knows how both are recorded, not how a source was written; no method."""

from __future__ import annotations

from engine.search.actions import Conclude, NewCandidate
from engine.search.context import RunContext
from engine.search.patching.prediction import NOTHING_PREDICTED, Prediction
from storage.differences import unified
from storage.run import events as ev
from storage.run.events import CandidateCreated
from storage.run.settings import DepthOutcome, Origin


def create_candidate(
    context: RunContext,
    source: str,
    parent_id: str | None,
    makes: NewCandidate,
    summary: str,
    prediction: Prediction = NOTHING_PREDICTED,
) -> None:
    """Journal a new candidate, once per step even when the step is redone after a crash."""
    record = context.record
    if any(a.created.step == context.step for a in record.candidates.values()):
        return
    parent = record.candidates[parent_id] if parent_id else None
    lost = context.language.lost(context.source(parent), source) if parent else ""
    # Other numbers change nothing of what a person should look at.
    parent_flags = parent.created.flags if parent and makes.origin is Origin.TUNED else ()
    diff = unified_diff(context.source(parent), source, parent.candidate_id) if parent else ""
    context.emit(
        CandidateCreated(
            step=context.step,
            candidate_id=f"c{len(context.whole.candidates) + 1:03d}",
            parent_id=parent_id,
            base_id=makes.base_id,
            depth=record.step_index,
            generation=makes.generation,
            repair=makes.repair,
            origin=makes.origin,
            source_blob=context.blobs.put(source),
            diff_blob=context.blobs.put(diff) if diff else None,
            lines_added=_count(diff, "+") if parent else source.count("\n"),
            lines_removed=_count(diff, "-"),
            summary=summary,
            flags=(*parent_flags, lost) if lost else parent_flags,
            technique=makes.technique or prediction.technique,
            predicted_gain=makes.predicted_gain if makes.technique else prediction.gain,
            trajectory=makes.trajectory,
            second_parent_id=makes.second_parent_id,
        )
    )


def unified_diff(old: str, new: str, old_name: str) -> str:
    """A unified diff with three lines of context."""
    hunks = unified(old.splitlines(), new.splitlines())
    return "\n".join([f"--- {old_name}", "+++ candidate", *hunks] if hunks else []) + "\n"


def _count(diff: str, sign: str) -> int:
    return sum(line.startswith(sign) and not line.startswith(sign * 3) for line in diff.split("\n"))


def conclude(context: RunContext, action: Conclude) -> None:
    """Journal how the current step index ended."""
    record = context.record
    accepted = action.outcome is DepthOutcome.ACCEPTED and action.candidate_id is not None
    context.emit(
        ev.DepthFinished(
            step=context.whole.steps_finished,
            depth=action.index,
            outcome=action.outcome,
            candidate_id=action.candidate_id,
            base_id=action.base_id,
            is_profile_exposed=record.is_profile_shown,
            is_best=accepted and action.candidate_id == context.whole.best_id,
            reason=action.reason,
            reward=action.reward,
            weighed=action.weighed,
        )
    )
