"""The one place where a step index ends: its kernel is accepted, or the base stays. Knows no method."""

from __future__ import annotations

from engine.actions import Conclude
from engine.context import RunContext
from storage import events as ev
from storage.records import DepthOutcome


def conclude(context: RunContext, action: Conclude) -> None:
    """Journal how the current step index ended."""
    record = context.record
    accepted = action.outcome is DepthOutcome.ACCEPTED and action.candidate_id is not None
    context.emit(
        ev.DepthFinished(
            step=record.steps_finished,
            depth=action.index,
            outcome=action.outcome,
            candidate_id=action.candidate_id,
            base_id=action.base_id,
            is_profile_exposed=record.is_profile_shown,
            is_best=accepted and action.candidate_id == record.best_id,
            reason=action.reason,
        )
    )
