"""Steps that wait for a person's yes. Knows the rule and the commands, not what a step does."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum

from engine.search.actions import Step, label
from engine.search.context import RunContext
from engine.search.human.inbox import Inbox
from engine.search.methods import words_of
from engine.search.steps.candidates import conclude
from storage.run import events as ev
from storage.run.record import named
from storage.run.settings import RunState, StepKind
from storage.run.steering.command_arguments import BEGIN, TUNE, Fallback
from storage.run.steering.verbs import VERBS

SKIPPED = "skipped by a person"


class Approval(Enum):
    """The word on a step. UNCLEAR: something else was asked for meanwhile, so the loop looks again."""

    GIVEN = "given"
    REFUSED = "refused"
    UNCLEAR = "unclear"


def await_approval(
    context: RunContext, inbox: Inbox, step: Step, clock: Callable[[], float] = time.monotonic
) -> Approval:
    """Wait for a yes where the run's rule wants one; a step that was begun before has had it."""
    record, rule = context.record, context.record.approval_rule
    human, number = record.human, context.whole.next_step
    if context.record.in_flight is not None:
        return Approval.REFUSED if human.is_approved is False else Approval.GIVEN
    if not rule.covers(label(step)):
        return Approval.GIVEN
    asked = ev.ApprovalAsked(number, label(step), step.index, step.about, rule.fallback, rule.after_s)
    if human.asked != asked:
        context.emit(asked)
    if human.is_approved is None:
        _wait(context, inbox, asked, clock)
    if human.is_approved is None:
        return Approval.UNCLEAR
    return Approval.GIVEN if human.is_approved else Approval.REFUSED


def _wait(context: RunContext, inbox: Inbox, asked: ev.ApprovalAsked, clock: Callable[[], float]) -> None:
    human, began, word = context.record.human, clock(), "a person has responded"
    context.emit(ev.StateChanged(RunState.WAITING, _sentence(context, asked)))
    while human.is_approved is None:
        done = inbox.take()
        if any(not VERBS[command.kind].keeps_step for command in done) or context.record.steering.is_paused:
            break
        if human.is_approved is None and clock() - began >= asked.after_s and asked.fallback is not Fallback.NEVER:
            is_given = asked.fallback is Fallback.YES
            word = f"{'approved' if is_given else 'rejected'}: no response within {asked.after_s:g} seconds"
            context.emit(ev.ApprovalSettled(asked.step, is_given, word))
        elif human.is_approved is None and asked.fallback is Fallback.NEVER:
            inbox.wait_for_person(_sentence(context, asked))
        elif human.is_approved is None:
            inbox.sleep()
    if not context.record.steering.is_stopped:
        context.emit(ev.StateChanged(RunState.RUNNING, word))


def _sentence(context: RunContext, asked: ev.ApprovalAsked) -> str:
    about = f" {named(context.record, asked.candidate_id)}" if asked.candidate_id else ""
    done = "approved" if asked.fallback is Fallback.YES else "rejected"
    default = "" if asked.fallback is Fallback.NEVER else f"; {done} after {asked.after_s:g} s without a response"
    return (
        f"Approve the next step: {asked.kind}{about} at {words_of(context.strategy).distinct} {asked.depth}{default}."
    )


def skip_step(context: RunContext, step: Step) -> None:
    """Leave a step out: a profile is not taken, a kernel not tuned, the compiler's not begun with; without any other
    its step index ends."""
    record, name = context.record, label(step)
    begun = record.in_flight
    number = context.whole.next_step if begun is None else begun.step
    if begun is None:
        context.emit(ev.StepStarted(number, name, step.index, step.about))
    if name == StepKind.PROFILE and step.about is not None:
        context.emit(ev.ProfileFailed(number, step.about, SKIPPED))
    is_extra = name in (StepKind.PROFILE, TUNE, BEGIN)
    left = None if is_extra else context.strategy.abandon(record, f"{name} {SKIPPED}")
    context.emit(ev.StepFinished(number, name, 0.0, "skipped"))
    if left is not None:
        conclude(context, left)
