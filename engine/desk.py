"""Calls that a person answers: asked, checked as they come in, taken. Knows the run, not the screen it is shown on."""

from __future__ import annotations

from engine.bench import Bench
from engine.llm import Completion, Message
from engine.llm.manual import ManualModel
from engine.patching.edits import EditError
from engine.patching.offer import read_offer
from engine.patching.reply import find_python
from storage import codec
from storage import events as ev
from storage.attendance import MANUAL, Answer, AskFirst, Hand
from storage.records import Command, CommandKind, Role


def ask_person(
    bench: Bench, call: int, role: Role, messages: list[Message], candidate_id: str | None, *, exposed: bool
) -> Completion:
    """The reply of a person to call number `call` of the step in flight.

    Raises:
        AnswerNeeded: there is none yet. The question is in the journal; asking again later is free.
    """
    prompt = bench.blobs.put(codec.dumps([{"role": m.role, "text": m.text} for m in messages]))
    question = ev.QuestionAsked(bench.step, call, role, bench.history.depth, candidate_id, prompt)
    attendance = bench.history.attendance
    if attendance.question != question:
        bench.emit(question)
    found = attendance.answer_to(bench.step, call)
    model = ManualModel(lambda purpose: bench.blobs.get(found[1].blob) if found else None)
    completion = model.complete(messages, bench.purpose(role, candidate_id), lambda piece: None)
    bench.emit(
        ev.ModelCalled(
            step=bench.step,
            call=call,
            role=role,
            depth=bench.history.depth,
            candidate_id=candidate_id,
            model=completion.model,
            prompt_blob=prompt,
            reply_blob=bench.blobs.put(completion.text),
            input_tokens=0,
            output_tokens=0,
            cached_tokens=0,
            reasoning_tokens=0,
            cost_usd=completion.cost_usd,
            seconds=completion.seconds,
            finish_reason=completion.finish_reason,
            is_profile_exposed=exposed,
        )
    )
    settle_answers(bench)
    return completion


def settle_answers(bench: Bench) -> None:
    """Journal which answers were used: also those that a killed engine had used and not told."""
    history = bench.history
    for command_id, answer in list(history.attendance.waiting_answers.items()):
        used = history.calls.get((answer.step, answer.call))
        if used is not None and (used.model, used.reply_blob) == (MANUAL, answer.blob):
            bench.emit(ev.CommandEffective(command_id, answer.step, f"the reply of step {answer.step}"))


def refusal(bench: Bench, command: Command) -> str | None:
    """Why what a person asks or answers cannot be taken; for an answer the parser's report."""
    attendance = bench.history.attendance
    match command.kind:
        case CommandKind.ANSWER:
            return _refused_answer(bench, command.argument)
        case CommandKind.TAKE_OVER if command.argument not in set(Hand):
            return f"take_over takes next, all or off, not {command.argument!r}"
        case CommandKind.TAKE_OVER if attendance.is_manual:
            return "you already write every reply of this run; choose a model with set_model to change that"
        case CommandKind.ASK_FIRST:
            return _refused_rule(command.argument)
        case CommandKind.APPROVE | CommandKind.SKIP:
            step = attendance.asked.step if attendance.asked else None
            if step is None or command.argument not in ("", str(step)):
                return (
                    f"step {command.argument} is not waiting for approval"
                    if command.argument
                    else "no step is waiting for approval"
                )
        case _:
            return None
    return None


def _refused_rule(argument: str) -> str | None:
    try:
        AskFirst.parse(argument)
    except ValueError as error:
        return str(error)
    return None


def _refused_answer(bench: Bench, argument: str) -> str | None:
    question = bench.history.attendance.question
    try:
        answer = Answer.parse(argument)
        text = bench.blobs.get(answer.blob)
    except (ValueError, FileNotFoundError) as error:
        return f"the reply cannot be read: {error}"
    if question is None or (question.step, question.call) != (answer.step, answer.call):
        return "this call has been answered already; your reply is saved but not used"
    try:
        require_usable(bench, question, text)
    except EditError as report:
        return str(report)
    return None


def require_usable(bench: Bench, question: ev.QuestionAsked, text: str) -> None:
    """Raises EditError, with the report a model would get, for an answer that the step could not use."""
    if not text.strip():
        raise EditError("The reply is empty.")
    if question.role is Role.SYNTHESISE and find_python(text) is None:
        raise EditError("No kernel was found: send the whole file with class ModelNew in one ```python block.")
    if question.candidate_id is not None and question.role in (Role.REPAIR, Role.OPTIMISE):
        read_offer(text).apply(bench.source(bench.history.attempts[question.candidate_id]))
