"""One question to the model, from the budget to the journal: sent, tried again, counted. Knows no endpoint.

Each try is journaled before it is sent and when it ends, so that a budget of N calls never makes call N + 1, whatever
kills the engine in between. A reply that was cut off at the output limit is asked for once more with a larger one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial

from engine.errors import BudgetExhausted, CallError, StopRequested
from engine.search import arrived, limits
from engine.search.actions import Ask
from engine.search.arrived import Arrived
from engine.search.context import NAP_S, RunContext
from engine.search.daily import Spent
from engine.search.human.replies import ask_person
from engine.search.llm import Completion, Message, Purpose, Terms
from engine.search.llm.retrying import pause_before_next
from engine.search.prompting import as_json, fit_conversation
from engine.search.steps.tool_calls import workbench
from storage.run import events as ev
from storage.run.models import CallFailure

CUT_OFFS = 2
SMALLEST_RAISE = 8192


def reply_to(
    context: RunContext,
    ask: Ask,
    call: int,
    messages: list[Message],
    *,
    wants_edits: bool = False,
    tools_left: int | None = None,
) -> Completion:
    """The reply to call number `call` of the step in flight; one that was paid for before is read, not bought.

    Raises:
        BudgetExhausted: this call would exceed a limit of the run or of the day.
        ModelError: the model, or the person in its place, gives no usable reply.
        StopRequested: a person stopped or paused the run meanwhile.
    """
    record = context.record
    if record.is_by_hand and (context.step, call) not in record.calls:
        if reason := limits.exhausted(context.whole):
            raise BudgetExhausted(reason)
        return ask_person(context, ask, call, messages)
    purpose = replace(context.purpose(ask.label, ask.about), wants_edits=wants_edits, tools_left=tools_left)
    purpose = replace(purpose, bench=workbench(context, ask, call))
    completion = Question(context, call, purpose, messages, ask.about, ask.shows_profile).ask()
    _warn(context, is_metered=context.speaker.terms(purpose) is not None)
    return completion


def _warn(context: RunContext, is_metered: bool) -> None:
    """Tell, once for each limit of the run and of the day, that four fifths of it are used."""
    of_day = context.ledger.shares() if is_metered else []
    for name, used, allowed in [*limits.warnings(context.whole), *limits.nearly(context.whole, of_day)]:
        context.emit(ev.BudgetWarned(name, used, allowed))


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a step: `call` numbers the questions of a step from 0."""

    context: RunContext
    call: int
    purpose: Purpose
    messages: list[Message]
    candidate_id: str | None
    is_exposed: bool

    def ask(self) -> Completion:
        """The reply; one that was paid for before is read, not bought.

        Raises:
            BudgetExhausted: a limit of the run or of the day forbids the next call.
            ModelError: no try gave a usable reply.
            StopRequested: a person stopped or paused the run meanwhile.
        """
        context, key = self.context, (self.context.step, self.call)
        close_lost_call(context)
        paid = context.record.calls.get(key)
        completion = _read(context, paid) if paid else self._buy(self.purpose)
        terms = context.speaker.terms(self.purpose)
        if completion.finish_reason == "length" and terms and context.record.cut_offs.get(key, 0) < CUT_OFFS:
            limit = raised_limit(terms, completion)
            return self._buy(replace(self.purpose, output_limit=limit)) if limit else completion
        return completion

    def _buy(self, purpose: Purpose) -> Completion:
        context = self.context
        terms = context.speaker.terms(purpose)
        if terms is None:
            await_room(context, Spent())
            if reason := limits.exhausted(context.whole):
                raise BudgetExhausted(reason)
            reply = context.listen(self.messages, purpose)
            order = self._order(purpose, self._keep(self.messages), reply.model)
            context.emit(_called(context, order, self._whole(order, [], reply)))
            return reply
        messages = fit_conversation(self.messages, limits.room(context.whole, terms))
        failed: list[CallError] = []
        while True:
            order, began = self._send(purpose, terms, messages), time.monotonic()
            try:
                completion = context.listen(messages, purpose, partial(self._keep_whole, order, messages))
            except StopRequested as asked:
                cancelled = CallError(CallFailure.CANCELLED, str(asked), is_charged=True, text=context.heard())
                end_call(context, order, terms, cancelled, None, time.monotonic() - began)
                raise
            except CallError as error:
                failed.append(error)
                pause = pause_before_next(failed, context.chance())
                end_call(context, order, terms, error, pause, time.monotonic() - began)
                if pause is None:
                    raise
                context.rest(pause)
                continue
            take_reply(context, order, self._whole(order, messages, completion))
            return completion

    def _send(self, purpose: Purpose, terms: Terms, messages: list[Message]) -> ev.CallSent:
        """Journal a call that is about to be sent, if no limit forbids it."""
        context = self.context
        expected = limits.estimate(context.whole, terms.model, sum(len(m.text) for m in messages))
        reserved = _spent(expected, terms.cost(expected, 0))
        await_room(context, reserved)
        arrived.make_room(context.arrived_file)  # a reply that could not be kept is not bought
        in_step = context.company.work_so_far(context.step_began)
        if reason := limits.forbids(context.whole, terms, expected, in_step) or context.ledger.reserve(reserved):
            raise BudgetExhausted(reason)
        order = self._order(purpose, self._keep(messages), terms.model, expected, terms.cost(expected, 0))
        order = replace(order, output_limit=purpose.output_limit or terms.output_limit)
        context.emit(order)
        return order

    def _order(
        self, purpose: Purpose, prompt_blob: str, model: str, expected: int = 0, cost: float | None = None
    ) -> ev.CallSent:
        context = self.context
        return ev.CallSent(
            step=context.step,
            call=self.call,
            attempt=context.record.sent.get((context.step, self.call), 0),
            role=purpose.role,
            depth=context.record.index_in_flight,
            candidate_id=self.candidate_id,
            model=model,
            prompt_blob=prompt_blob,
            expected_tokens=expected,
            expected_cost_usd=cost,
            output_limit=None,
        )

    def _keep(self, messages: list[Message]) -> str:
        return self.context.blobs.put(as_json(messages))

    def _whole(self, order: ev.CallSent, messages: list[Message], reply: Completion) -> Arrived:
        characters = sum(len(message.text) for message in messages)
        return Arrived(order.step, order.call, order.attempt, self.is_exposed, characters, reply)

    def _keep_whole(self, order: ev.CallSent, messages: list[Message], reply: Completion) -> None:
        arrived.keep(self.context.arrived_file, self._whole(order, messages, reply))


def take_reply(context: RunContext, order: ev.CallSent, whole: Arrived) -> None:
    """Journal the reply to a paid call, and enter what it cost into the day's sum."""
    reply = whole.completion
    context.emit(_called(context, order, whole))
    actual = _spent((reply.input_tokens or 0) + (reply.output_tokens or 0), reply.cost_usd)
    context.ledger.settle(_spent(order.expected_tokens, order.expected_cost_usd), actual)


def take_arrived(context: RunContext) -> None:
    """Journal the replies that had come in whole when an engine ended before it could."""
    for whole in list(arrived.kept(context.folder.path)):
        order = context.whole.open_calls.get((whole.step, whole.call))
        if order is not None and order.attempt == whole.attempt:
            take_reply(context, order, whole)


def _called(context: RunContext, order: ev.CallSent, whole: Arrived) -> ev.ModelCalled:
    """A reply as its event; its text is stored."""
    reply = whole.completion
    is_counted = reply.input_tokens is not None and reply.output_tokens is not None
    characters = whole.prompt_characters + len(reply.text)
    return ev.ModelCalled(
        step=order.step,
        call=order.call,
        role=order.role,
        depth=order.depth,
        candidate_id=order.candidate_id,
        model=reply.model,
        prompt_blob=order.prompt_blob,
        reply_blob=context.blobs.put(reply.text),
        input_tokens=reply.input_tokens,
        output_tokens=reply.output_tokens,
        cached_tokens=reply.cached_tokens,
        reasoning_tokens=reply.reasoning_tokens,
        cost_usd=reply.cost_usd,
        seconds=reply.seconds,
        finish_reason=reply.finish_reason,
        is_profile_exposed=whole.is_profile_exposed,
        prompt_characters=whole.prompt_characters,
        assumed_tokens=0 if is_counted else limits.estimate(context.whole, reply.model, characters),
    )


def await_room(context: RunContext, more: Spent) -> None:
    """Wait while the calls at work may still use up what a call of `more` needs, however long their replies get.

    So several calls at once overrun a limit by no more than one does: by the reply that is sent last.
    """
    while context.company.listening:
        prompts, replies = Spent(len(context.company.listening)), Spent()
        for order in context.whole.open_calls.values():
            prompts = _both(prompts, _spent(order.expected_tokens, order.expected_cost_usd), calls=prompts.calls)
            replies = _both(replies, _longest_reply(context, order))
        # The day's sum has the prompts already.
        is_full = limits.has_no_room(context.whole, _both(prompts, replies), more)
        if not is_full and context.ledger.has_room(_both(replies, more)):
            return
        context.rest(NAP_S)


def _longest_reply(context: RunContext, order: ev.CallSent) -> Spent:
    terms = context.speaker.terms(context.purpose(order.role, order.candidate_id))
    if terms is None:
        return Spent()
    tokens = order.output_limit or terms.reply_room
    return Spent(0, tokens, terms.cost(0, tokens) or 0.0)


def _both(spent: Spent, other: Spent, calls: int | None = None) -> Spent:
    return Spent(
        spent.calls + other.calls if calls is None else calls, spent.tokens + other.tokens, spent.cost + other.cost
    )


def raised_limit(terms: Terms, cut: Completion) -> int | None:
    """The output limit to ask with after a reply was cut off, in tokens; None when no larger one may be asked for."""
    reached = max(terms.output_limit or 0, cut.output_tokens or 0)
    wanted = max(2 * reached, SMALLEST_RAISE)
    limit = min(wanted, terms.longest_reply or wanted, terms.window // 2)
    return limit if limit > reached else None


def close_lost_call(context: RunContext) -> None:
    """End a call that a killed engine left open: what had arrived is kept, and it counts as spent."""
    order = context.record.open_call
    if order is not None:
        lost = CallError(CallFailure.LOST, "the engine ended while the reply was coming in", is_charged=True)
        lost.text = context.heard()
        end_call(context, order, context.speaker.terms(context.purpose(order.role, order.candidate_id)), lost, None)


def end_call(
    context: RunContext,
    order: ev.CallSent,
    terms: Terms | None,
    error: CallError,
    pause: float | None,
    seconds: float = 0.0,
) -> None:
    """Journal that a call gave no usable reply, with what it cost as far as that can be told."""
    counted, written = error.usage, limits.estimate(context.whole, order.model, len(error.text))
    read: int | None = order.expected_tokens
    if counted is not None:
        read, written = counted.input, counted.output or 0
    elif not error.is_charged:
        read, written = 0, 0
    cost = 0.0 if not error.is_charged else terms.cost(read or 0, written) if terms else None
    context.emit(
        ev.CallFailed(
            step=order.step,
            call=order.call,
            attempt=order.attempt,
            role=order.role,
            depth=order.depth,
            candidate_id=order.candidate_id,
            model=order.model,
            prompt_blob=order.prompt_blob,
            failure=error.failure,
            reason=str(error),
            is_charged=error.is_charged,
            is_estimated=error.is_charged and counted is None,
            reply_blob=context.blobs.put(error.text) if error.text else None,
            input_tokens=read,
            output_tokens=written,
            cached_tokens=counted.cached if counted else 0,
            reasoning_tokens=counted.reasoning if counted else 0,
            cost_usd=cost,
            seconds=seconds,
            retry_in_s=pause,
        )
    )
    expected = _spent(order.expected_tokens, order.expected_cost_usd)
    context.ledger.settle(expected, _spent((read or 0) + written, cost) if error.is_charged else Spent())


def _spent(count: int, cost: float | None) -> Spent:
    return Spent(1, count, cost or 0.0, int(cost is None))


def _read(context: RunContext, paid: ev.ModelCalled) -> Completion:
    return Completion(
        text=context.blobs.get(paid.reply_blob),
        model=paid.model,
        finish_reason=paid.finish_reason,
        seconds=paid.seconds,
        input_tokens=paid.input_tokens,
        output_tokens=paid.output_tokens,
    )
