"""The loop: ask the strategy for a move, carry it out, journal what came of it. Read this file first.

    synthesise -> compile -> check -> time -> (profile) -> depth += 1 -> optimise (one change) -> compile ...
                     |fail     |fail
                     +---------+--> diagnose -> repair -> compile ...

What to do next is decided in `engine.strategies`, from the journal alone; how a step is done is in `engine.steps`.
A run that is killed at any instant goes on with the step that was in flight, and pays for no reply twice.
"""

from __future__ import annotations

import time

from engine.bench import Bench
from engine.errors import BudgetExhausted, ModelError, StopRequested
from engine.leave import Leave, ask_leave, skip_step
from engine.moves import Finish, Move, Settle, Step
from engine.steering import Inbox
from engine.steps.evaluate import check_candidate, compile_candidate, profile_candidate, time_candidate
from engine.steps.submit import take_submission
from engine.steps.write import diagnose, optimise, repair, synthesise
from engine.strategies import Strategy
from storage import events as ev
from storage.records import DepthOutcome, RunState, StepKind


def run(bench: Bench, strategy: Strategy, inbox: Inbox) -> ev.RunEnded:
    """Work until the run ends; returns the final event, which is in the journal by then.

    Raises:
        EngineError: our own failure; the journal is whole and the run can be resumed.
    """
    measure_limit(bench)
    while True:
        inbox.gate()
        if bench.history.steering.is_stopped:
            return finish(bench, Finish(RunState.STOPPED, "stopped by a person"))
        move = step_in_flight(bench) or strategy.next_move(bench.history)
        match move:
            case Finish():
                return finish(bench, move)
            case Settle():
                settle(bench, move)
            case Step():
                leave = ask_leave(bench, inbox, move)
                if leave is Leave.REFUSED:
                    skip_step(bench, move)
                elif leave is Leave.GIVEN and (ending := attempt_step(bench, move, inbox)):
                    return finish(bench, ending)


def attempt_step(bench: Bench, move: Step, inbox: Inbox) -> Finish | None:
    """Take one step; a model that cannot answer makes the run wait for a person instead of ending it."""
    try:
        take_step(bench, move)
    except BudgetExhausted as limit:
        return Finish(RunState.FINISHED, str(limit))
    except ModelError as problem:
        inbox.wait(str(problem))
    except StopRequested:
        pass  # the gate reads the command and ends the run; the step is done again on resume
    return None


def take_step(bench: Bench, move: Step) -> None:
    """Carry out one step between its started and finished events."""
    bench.step_began = started = time.monotonic()
    if bench.history.in_flight is None:
        bench.emit(ev.StepStarted(bench.history.steps_finished + 1, move.kind, move.depth, move.candidate_id))
    bench.step = bench.history.steps_finished + 1
    outcome = carry_out(bench, move)
    bench.emit(ev.StepFinished(bench.step, move.kind, time.monotonic() - started, outcome))


def carry_out(bench: Bench, move: Step) -> str:
    """Do the work of one step; returns its outcome."""
    if move.kind is StepKind.SUBMIT:
        return take_submission(bench)
    if move.candidate_id is None:
        return synthesise(bench)
    attempt = bench.history.attempts[move.candidate_id]
    match move.kind:
        case StepKind.COMPILE:
            return compile_candidate(bench, attempt)
        case StepKind.CHECK:
            return check_candidate(bench, attempt)
        case StepKind.TIME:
            return time_candidate(bench, attempt)
        case StepKind.PROFILE:
            return profile_candidate(bench, attempt)
        case StepKind.DIAGNOSE:
            return diagnose(bench, attempt)
        case StepKind.REPAIR:
            return repair(bench, attempt)
        case StepKind.OPTIMISE:
            return optimise(bench, attempt)
        case _:
            return synthesise(bench)


def settle(bench: Bench, move: Settle) -> None:
    """End a depth: its kernel is accepted, or the base stays."""
    history = bench.history
    accepted = move.outcome is DepthOutcome.ACCEPTED and move.candidate_id is not None
    is_best = accepted and history.beats(move.candidate_id or "", history.best_id)
    bench.emit(
        ev.DepthFinished(
            step=history.steps_finished,
            depth=move.depth,
            outcome=move.outcome,
            candidate_id=move.candidate_id,
            base_id=move.base_id,
            is_profile_exposed=history.is_exposed,
            is_best=is_best,
            reason=move.reason,
        )
    )


def finish(bench: Bench, move: Finish) -> ev.RunEnded:
    """End the run."""
    ended = ev.RunEnded(move.state, move.reason, bench.history.best_id)
    bench.emit(ended)
    return ended


def step_in_flight(bench: Bench) -> Move | None:
    """The step that a killed engine had begun: it is taken again, with whatever it had already journaled."""
    started = bench.history.in_flight
    return Step(started.kind, started.depth, started.candidate_id) if started else None


def measure_limit(bench: Bench) -> None:
    """Journal the task's speed of light on this machine, once per run."""
    if bench.history.limit is None:
        bench.emit(ev.LimitMeasured(bench.toolchain.limit(bench.task)))
