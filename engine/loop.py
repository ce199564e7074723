"""The loop: ask the strategy for a move, carry it out, journal what came of it. Read this file first.

    synthesise -> compile -> check -> time -> (profile) -> depth += 1 -> optimise (one change) -> compile ...
                     |fail     |fail
                     +---------+--> diagnose -> repair -> compile ...

What to do next is decided in `engine.strategies`, from the journal alone; how a step is done is in `engine.steps`.
A run that is killed at any instant goes on with the step that was in flight, and pays for no reply twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from engine.actions import Finish, Move, Settle, Step
from engine.context import RunContext
from engine.errors import BudgetExhausted, EngineError, ModelError, StopRequested
from engine.human.approval import Leave, ask_leave, skip_step
from engine.human.inbox import Inbox
from engine.human.submissions import take_submission
from engine.record import Candidate
from engine.steps.evaluate import check_candidate, compile_candidate, profile_candidate, time_candidate
from engine.steps.write import diagnose, optimise, repair, synthesise
from engine.strategies import Strategy
from storage import events as ev
from storage.records import DepthOutcome, RunState, StepKind


def run(context: RunContext, strategy: Strategy, inbox: Inbox) -> ev.RunEnded:
    """Work until the run ends; returns the final event, which is in the journal by then.

    Raises:
        EngineError: our own failure; the journal is whole and the run can be resumed.
    """
    with suppress(StopRequested):  # the gate reads the command and ends the run
        measure_limit(context)
    while True:
        inbox.gate()
        if context.record.steering.is_stopped:
            return finish(context, Finish(RunState.STOPPED, "stopped by a person"))
        move = step_in_flight(context) or strategy.next_move(context.record)
        match move:
            case Finish():
                return finish(context, move)
            case Settle():
                settle(context, move)
            case Step():
                leave = ask_leave(context, inbox, move)
                if leave is Leave.REFUSED:
                    skip_step(context, move)
                elif leave is Leave.GIVEN and (ending := attempt_step(context, move, inbox)):
                    return finish(context, ending)


def attempt_step(context: RunContext, move: Step, inbox: Inbox) -> Finish | None:
    """Take one step; a model that cannot answer makes the run wait for a person instead of ending it."""
    try:
        take_step(context, move)
    except BudgetExhausted as limit:
        return Finish(RunState.FINISHED, str(limit))
    except ModelError as problem:
        inbox.wait(str(problem))
    except StopRequested:
        pass  # the gate reads the command and ends the run; the step is done again on resume
    return None


def take_step(context: RunContext, move: Step) -> None:
    """Carry out one step between its started and finished events."""
    work = work_of(context, move)  # before anything is journaled: a resumed run takes the step in flight again
    context.step_began = started = time.monotonic()
    if context.record.in_flight is None:
        context.emit(ev.StepStarted(context.record.steps_finished + 1, move.kind, move.depth, move.candidate_id))
    context.step = context.record.steps_finished + 1
    outcome = work()
    context.emit(ev.StepFinished(context.step, move.kind, time.monotonic() - started, outcome))


def work_of(context: RunContext, move: Step) -> Callable[[], str]:
    """The work of one step, which returns its outcome.

    Raises:
        EngineError: the strategy asked for what is no step, or for work on a kernel that the run does not have.
    """
    if work := _ON_THE_RUN.get(move.kind):
        return partial(work, context)
    if move.kind not in _ON_A_KERNEL:
        raise EngineError(f"the strategy asked for {str(move.kind)!r}, which is no step of the loop")
    if (candidate := context.record.candidates.get(move.candidate_id or "")) is None:
        raise EngineError(
            f"the strategy asked to {move.kind} {move.candidate_id}, a kernel that this run does not have"
        )
    return partial(_ON_A_KERNEL[move.kind], context, candidate)


_ON_THE_RUN: Mapping[StepKind, Callable[[RunContext], str]] = {
    StepKind.SYNTHESISE: synthesise,
    StepKind.SUBMIT: take_submission,
}
_ON_A_KERNEL: Mapping[StepKind, Callable[[RunContext, Candidate], str]] = {
    StepKind.COMPILE: compile_candidate,
    StepKind.CHECK: check_candidate,
    StepKind.TIME: time_candidate,
    StepKind.PROFILE: profile_candidate,
    StepKind.DIAGNOSE: diagnose,
    StepKind.REPAIR: repair,
    StepKind.OPTIMISE: optimise,
}


def settle(context: RunContext, move: Settle) -> None:
    """End a depth: its kernel is accepted, or the base stays."""
    record = context.record
    accepted = move.outcome is DepthOutcome.ACCEPTED and move.candidate_id is not None
    context.emit(
        ev.DepthFinished(
            step=record.steps_finished,
            depth=move.depth,
            outcome=move.outcome,
            candidate_id=move.candidate_id,
            base_id=move.base_id,
            is_profile_exposed=record.is_exposed,
            is_best=accepted and move.candidate_id == record.best_id,
            reason=move.reason,
        )
    )


def finish(context: RunContext, move: Finish) -> ev.RunEnded:
    """End the run."""
    ended = ev.RunEnded(move.state, move.reason, context.record.best_id)
    context.emit(ended)
    return ended


def step_in_flight(context: RunContext) -> Move | None:
    """The step that a killed engine had begun: it is taken again, with whatever it had already journaled."""
    started = context.record.in_flight
    return Step(started.kind, started.depth, started.candidate_id) if started else None


def measure_limit(context: RunContext) -> None:
    """Journal the task's speed of light on this machine, once per run."""
    if context.record.limit is None:
        context.emit(ev.LimitMeasured(context.judge(context.toolchain.limit, context.task)))
