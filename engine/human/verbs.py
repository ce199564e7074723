"""Which commands make sense now, and what each changes, in words. Asks the run's state; changes nothing."""

from __future__ import annotations

from engine.context import RunContext
from engine.errors import EngineError
from engine.human import replies, submissions
from engine.record import Record, named
from storage import budgets
from storage.command_arguments import MANUAL, ModelChoice, Retry
from storage.records import Command, CommandKind, KernelClass, Switch, Verdict
from storage.verbs import RULE_LENGTH, RULES

_VERB = {CommandKind.COLLECT: "collect profiles", CommandKind.EXPOSE: "show profiles"}


def refusal(context: RunContext, command: Command) -> str | None:
    """Why a command cannot be obeyed. Checked here too: the file may have been written by any program."""
    record, argument = context.record, command.argument
    match command.kind:
        case CommandKind.ROLL_BACK | CommandKind.SET_BASE | CommandKind.PIN:
            return _refused_kernel(record, command) or context.strategy.refusal(record, command)
        case CommandKind.COLLECT | CommandKind.EXPOSE if argument not in set(Switch):
            return f"{_VERB[command.kind]} takes auto, on or off, not {argument!r}"
        case CommandKind.SET_CLASS if argument not in set(KernelClass):
            return f"unknown kernel class {argument!r}"
        case CommandKind.SET_BUDGET:
            return _refused_limits(record, argument)
        case CommandKind.BAN | CommandKind.REQUIRE:
            return _refused_rule(record, argument)
        case CommandKind.LIFT if record.steering.rule(argument) is None:
            return "no such rule; it may have been removed already"
        case CommandKind.SUBMIT:
            return submissions.refusal(context, argument)
        case CommandKind.SET_MODEL | CommandKind.RETRY:
            return _refused_model(context, command)
        case _:
            return replies.refusal(context, command) or context.strategy.refusal(record, command)


def _refused_kernel(record: Record, command: Command) -> str | None:
    target, verb = record.candidates.get(command.argument), command.kind.replace("_", " ")
    if target is None:
        return f"this run has no {named(record, command.argument)}"
    if target.verdict is not Verdict.PASSED or target.timed is None:
        return f"{named(record, command.argument)} is not correct and timed; {verb} needs a kernel that passed"
    if command.argument not in {done.candidate_id for done in record.concluded}:
        return f"{named(record, command.argument)} belongs to an unfinished depth; {verb} needs one of a finished depth"
    return None


def _refused_limits(record: Record, argument: str) -> str | None:
    try:
        budgets.changed(record.budget, argument)
    except ValueError as error:
        return str(error)
    return None


def _refused_rule(record: Record, argument: str) -> str | None:
    text = " ".join(argument.split())
    if not text or len(text) > RULE_LENGTH:
        return f"a rule is one sentence of at most {RULE_LENGTH} characters"
    return "this rule exists already" if any(rule.text == text for rule in record.steering.rules) else None


def _refused_model(context: RunContext, command: Command) -> str | None:
    record, is_retry = context.record, command.kind is CommandKind.RETRY
    try:
        retry = Retry.parse(command.argument) if is_retry else None
        choice = retry.choice if retry else ModelChoice.parse(command.argument)
        if retry and record.model_step(retry.step) is None:
            return f"step {retry.step} did not call a model" if retry.step else "no model has been called yet"
        if retry and choice.model == MANUAL:
            return "to write the reply yourself use take_over; retry needs a model"
        if choice != ModelChoice(record.settings.model) and choice.model != MANUAL:
            return _unaffordable(context, choice)
    except (ValueError, EngineError) as error:
        return str(error)
    return None


def _unaffordable(context: RunContext, choice: ModelChoice) -> str | None:
    """Raises ModelError where that model cannot be asked at all."""
    terms = context.other_model(choice).terms(context.purpose("optimise", None))
    if context.record.budget.cost_usd is not None and terms is not None and terms.cost(1, 1) is None:
        return f"the price of {choice.model} is unknown, so the cost limit cannot be enforced: add it to prices.toml"
    return None


def note(context: RunContext, command: Command) -> str:
    """What a command that is in force from now on changes, and from where on."""
    record, argument = context.record, command.argument
    step = record.steps_finished + 1
    if said := context.strategy.note(record, command):
        return said
    match command.kind:
        case CommandKind.COLLECT:
            return f"collect profiles: {argument}, from step {step}"
        case CommandKind.SET_BUDGET:
            return f"limits from step {step}: {argument}"
        case CommandKind.SET_CLASS:
            return f"kernel class is {argument} from step {step}"
        case CommandKind.LIFT:
            return f"removed from step {step} on: {record.steering.rule(argument) or argument}"
        case CommandKind.SET_MODEL:
            return f"{ModelChoice.parse(argument).model} gets the calls from step {step} on"
        case CommandKind.RETRY:
            return f"{Retry.parse(argument).choice.model} gets the call of step {step}"
        case _:
            return f"in every prompt from step {step}" if command.kind in RULES else f"at step {step}"
