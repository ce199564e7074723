"""Calls that a person answers: asked, checked as they come in, taken. Knows the run, not the screen it is shown on."""

from __future__ import annotations

from engine.search.actions import Ask, Expects
from engine.search.context import RunContext
from engine.search.llm import Completion, Message
from engine.search.llm.manual import ManualModel
from engine.search.methods import Strategy
from engine.search.patching.edits import EditError, refuse_too_long
from engine.search.patching.proposed_patch import NothingOffered, read_patch
from engine.search.patching.reply import find_python, read_fields
from engine.search.prompting import as_json
from storage.run import events as ev
from storage.run.blobs import Blobs
from storage.run.record import Record
from storage.run.steering.command_arguments import MANUAL, REPLY_TAKES, Answer
from storage.run.steering.verbs import Command, CommandKind


def ask_person(context: RunContext, ask: Ask, call: int, messages: list[Message]) -> Completion:
    """The reply of a person to call number `call` of the step in flight.

    Raises:
        AnswerNeeded: there is none yet. The question is in the journal; asking again later is free.
    """
    prompt = context.blobs.put(as_json(messages))
    depth = context.record.index_in_flight
    question = ev.QuestionAsked(context.step, call, ask.label, depth, ask.about, prompt, ask.expects)
    human = context.record.human
    if human.question != question:
        context.emit(question)
    answer = human.answer_to(context.step, call)
    model = ManualModel(lambda purpose: context.blobs.get(answer[1].blob) if answer else None)
    completion = model.complete(messages, context.purpose(ask.label, ask.about), lambda piece: None)
    context.emit(
        ev.ModelCalled(
            step=context.step,
            call=call,
            role=ask.label,
            depth=context.record.index_in_flight,
            candidate_id=ask.about,
            model=completion.model,
            prompt_blob=prompt,
            reply_blob=context.blobs.put(completion.text),
            input_tokens=0,
            output_tokens=0,
            cached_tokens=0,
            reasoning_tokens=0,
            cost_usd=completion.cost_usd,
            seconds=completion.seconds,
            finish_reason=completion.finish_reason,
            is_profile_exposed=ask.shows_profile,
        )
    )
    settle_answers(context)
    return completion


def settle_answers(context: RunContext) -> None:
    """Journal which answers were used: also those that a killed engine had used and not told."""
    record = context.record
    for command_id, answer in list(record.human.waiting_answers.items()):
        used = record.calls.get((answer.step, answer.call))
        if used is not None and (used.model, used.reply_blob) == (MANUAL, answer.blob):
            context.emit(ev.CommandEffective(command_id, answer.step, f"the reply of step {answer.step}"))


def refusal(context: RunContext, command: Command) -> str | None:
    """Why what a person asks or answers cannot be taken; for an answer the parser's report."""
    match command.kind:
        case CommandKind.ANSWER:
            return _refused_answer(context, command.argument)
        case CommandKind.TAKE_OVER if context.record.is_manual:
            return "you already write every reply of this run; choose a model with set_model to change that"
        case CommandKind.APPROVE | CommandKind.SKIP:
            asked = context.whole.human.asked
            step = asked.step if asked else None
            if step is None or command.argument not in ("", str(step)):
                return (
                    f"step {command.argument} is not waiting for approval"
                    if command.argument
                    else "no step is waiting for approval"
                )
        case _:
            return None
    return None


def _refused_answer(context: RunContext, argument: str) -> str | None:
    question = context.record.human.question
    try:
        answer = Answer.parse(argument)
        text = context.blobs.get(answer.blob)
    except (ValueError, FileNotFoundError) as error:
        return f"the reply cannot be read: {error}"
    if question is None or (question.step, question.call) != (answer.step, answer.call):
        return "this call has been answered already; your reply is saved but not used"
    try:
        require_usable(context.record, context.blobs, context.strategy, question, text)
    except EditError as report:
        return str(report)
    return None


def require_usable(record: Record, blobs: Blobs, strategy: Strategy, question: ev.QuestionAsked, text: str) -> None:
    """Raises EditError, with the report a model would get, for an answer that the step could not use. Where it offers
    nothing at all, the report says what this prompt takes."""
    step = strategy.again(record, question.role, question.candidate_id)
    expects = step.expects if isinstance(step, Ask) else Expects.TEXT
    takes = f"This prompt takes {REPLY_TAKES[expects]}."
    if not text.strip():
        raise EditError(f"The reply is empty. {takes}")
    if expects is Expects.SOURCE:
        if (source := find_python(text)) is None:
            raise EditError(f"No kernel was found in the reply. {takes}")
        refuse_too_long(source)
    if isinstance(step, Ask) and expects is Expects.JSON:
        step.reads(text) if step.reads else read_fields(text, step.fields)
    if expects is Expects.PATCH:
        try:
            patch = read_patch(text)
        except NothingOffered as error:
            raise EditError(f"No change of the kernel was found in the reply. {takes}") from error
        patch.apply(blobs.get(record.candidates[question.candidate_id or ""].created.source_blob))
