"""The loop: ask the strategy for an action, carry it out, journal what came of it. Read this file first.

    strategy.next(record) -> Ask a model -> Evaluate the kernel it wrote -> Conclude the step index -> ... -> Finish

What to do next is decided in `engine.search.methods`, from the journal alone; how a step is done is in
`engine.search.steps`. A run that is killed at any instant goes on with the step that was in flight, and pays for no
reply twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from engine.errors import BudgetExhausted, EngineError, ModelError, StopRequested
from engine.search import arrived
from engine.search.actions import (
    Action,
    Ask,
    Begin,
    Conclude,
    Consult,
    Evaluate,
    Finish,
    Rank,
    Refuse,
    Step,
    TakeSubmission,
    Teach,
    Tune,
    label,
)
from engine.search.context import RunContext
from engine.search.human.approval import Approval, await_approval, skip_step
from engine.search.human.inbox import Inbox, take_submission
from engine.search.steps.ask import ask_model
from engine.search.steps.candidates import conclude
from engine.search.steps.compiler import begin, compiled_first, show_compiler
from engine.search.steps.evaluate import (
    check_candidate,
    compile_candidate,
    look_at_deployment,
    profile_candidate,
    refuse_candidate,
    time_candidate,
    timed_again_first,
)
from engine.search.steps.knowledge import consult, keep_evidence, teach
from engine.search.steps.ranking import keep_scores, rank
from engine.search.steps.tune import tune, tuned_first
from storage.run import events as ev
from storage.run.record import Candidate
from storage.run.settings import RunState, StepKind
from storage.run.steering.command_arguments import BEGIN, TUNE


def run(context: RunContext, inbox: Inbox) -> ev.RunEnded:
    """Work until the run ends; returns the final event, which is in the journal by then.

    Raises:
        EngineError: our own failure; the journal is whole and the run can be resumed.
    """
    prepare(context, inbox)
    while True:
        inbox.gate()
        if context.record.steering.is_stopped:
            return finish(context, Finish(RunState.STOPPED, "stopped by a person"))
        match next_action(context):
            case Finish() as ending:
                if ended := end(context, ending):
                    return ended
            case Conclude() as conclusion:
                conclude(context, conclusion)
                keep_evidence(context)
                keep_scores(context)
            case (
                Ask() | Evaluate() | TakeSubmission() | Refuse() | Consult() | Teach() | Rank() | Tune() | Begin()
            ) as step:
                approval = await_approval(context, inbox, step)
                if approval is Approval.REFUSED:
                    skip_step(context, step)
                elif approval is Approval.GIVEN and (ended := attempt_step(context, step, inbox)):
                    return ended
            case unknown:
                raise EngineError(f"the strategy asked for {unknown!r}, which is no action of the loop")


def prepare(context: RunContext, inbox: Inbox) -> None:
    """What is known before a first step. A pause breaks off the wait for a device, and then it is begun anew."""
    while not context.record.steering.is_stopped:
        try:
            measure_limit(context)
            show_compiler(context)
            return
        except StopRequested:
            inbox.gate()


def next_action(context: RunContext) -> Action:
    """The step that a killed engine had begun, with whatever it had already journaled; else the strategy's word."""
    started = context.record.in_flight
    if started is not None and started.kind == TUNE:
        return Tune(started.depth, started.candidate_id or "")
    if started is not None and started.kind == BEGIN:
        return Begin(started.depth)
    if started is not None:
        return context.strategy.again(context.record, started.kind, started.candidate_id)
    action = compiled_first(context.record, context.strategy.next(context.record))
    action = timed_again_first(context.record, action)
    return tuned_first(context.record, action, context.source)


def attempt_step(context: RunContext, step: Step, inbox: Inbox) -> ev.RunEnded | None:
    """Take one step; a model that cannot answer makes the run wait for a person instead of ending it."""
    try:
        take_step(context, step)
    except BudgetExhausted as limit:
        return end(context, Finish(RunState.FINISHED, str(limit)))
    except ModelError as problem:
        inbox.wait(str(problem))
    except StopRequested:
        pass  # the gate reads the command and ends the run; the step is done again on resume
    return None


def take_step(context: RunContext, step: Step) -> None:
    """Carry out one step between its started and finished events."""
    if step.about is not None:
        context.candidate(step.about)  # before anything is journaled: a resumed run takes the step in flight again
    context.step_began = started = time.monotonic()
    context.step = begin_step(context, step)
    outcome = carry_out(context, step)
    context.emit(ev.StepFinished(context.step, label(step), context.company.count_work(started), outcome))


def begin_step(context: RunContext, step: Step) -> int:
    """Journal that a step begins, unless it was in flight when an engine was killed; returns its number."""
    begun = context.record.in_flight
    if begun is None:
        begun = ev.StepStarted(context.whole.next_step, label(step), step.index, step.about)
        context.emit(begun)
    return begun.step


def carry_out(context: RunContext, step: Step) -> str:
    """The work of one step. Returns its outcome."""
    match step:
        case Ask():
            return ask_model(context, step)
        case Evaluate():
            return _STAGES[step.stage](context, context.candidate(step.about))
        case TakeSubmission():
            return take_submission(context, step)
        case Refuse():
            return refuse_candidate(context, context.candidate(step.about), step.reason)
        case Consult():
            return consult(context, step)
        case Teach():
            return teach(context, step)
        case Rank():
            return rank(context, step)
        case Tune():
            return tune(context, step)
        case Begin():
            return begin(context)


_STAGES: Mapping[StepKind, Callable[[RunContext, Candidate], str]] = {
    StepKind.COMPILE: compile_candidate,
    StepKind.CHECK: check_candidate,
    StepKind.TIME: time_candidate,
    StepKind.PROFILE: profile_candidate,
}


def end(context: RunContext, action: Finish) -> ev.RunEnded | None:
    """End the run after a last look; None where a person wants something else first, which the gate reads."""
    try:
        look_at_deployment(context, action)
    except StopRequested:
        return None
    return finish(context, action)


def finish(context: RunContext, action: Finish) -> ev.RunEnded:
    """End the run."""
    ended = ev.RunEnded(action.state, action.reason, context.whole.best_id)
    keep_evidence(context, is_ending=True)
    keep_scores(context, is_ending=True)
    context.emit(ended)
    if not context.whole.open_calls:
        arrived.forget(context.folder.path)
    return ended


def measure_limit(context: RunContext) -> None:
    """Journal the task's speed of light on this machine, once per run."""
    if context.record.limit is None:
        context.emit(ev.LimitMeasured(context.judge(context.toolchain.limit, context.task)))
