"""One question to the model, from the budget to the journal: sent, tried again, counted. Knows no endpoint.

Each try is journaled before it is sent and when it ends, so that a budget of N calls never makes call N + 1, whatever
kills the engine in between. A reply that was cut off at the output limit is asked for once more with a larger one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine import limits, retrying, tokens
from engine.daily import Spent
from engine.errors import BudgetExhausted, CallError, StopRequested
from engine.llm import Completion, Message, Purpose, Terms
from engine.prompt_parts import fit_conversation
from storage import codec
from storage import events as ev
from storage.models import CallFailure

if TYPE_CHECKING:
    from engine.bench import Bench

CUT_OFFS = 2
SMALLEST_RAISE = 8192


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a step: `call` numbers the questions of a step from 0."""

    bench: Bench
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
        bench, place = self.bench, (self.bench.step, self.call)
        close_lost_call(bench)
        paid = bench.history.calls.get(place)
        completion = _read(bench, paid) if paid else self._buy(self.purpose)
        terms = bench.speaker.terms(self.purpose)
        if completion.finish_reason == "length" and terms and bench.history.cut_offs.get(place, 0) < CUT_OFFS:
            limit = raised_limit(terms, completion)
            return self._buy(replace(self.purpose, output_limit=limit)) if limit else completion
        return completion

    def _buy(self, purpose: Purpose) -> Completion:
        bench = self.bench
        terms = bench.speaker.terms(purpose)
        if terms is None:
            if reason := limits.exhausted(bench.history):
                raise BudgetExhausted(reason)
            return self._told(bench.listen(self.messages, purpose), self._keep(self.messages), 0)
        messages = fit_conversation(self.messages, tokens.room(bench.history, terms))
        failed: list[CallError] = []
        while True:
            order, began = self._send(purpose, terms, messages), time.monotonic()
            try:
                completion = bench.listen(messages, purpose)
            except StopRequested as asked:
                cancelled = CallError(CallFailure.CANCELLED, str(asked), is_charged=True, text=bench.heard())
                end_call(bench, order, terms, cancelled, None, time.monotonic() - began)
                raise
            except CallError as error:
                failed.append(error)
                pause = retrying.pause_before_next(failed, bench.chance())
                end_call(bench, order, terms, error, pause, time.monotonic() - began)
                if pause is None:
                    raise
                bench.rest(pause)
                continue
            return self._settled(completion, order, messages)

    def _send(self, purpose: Purpose, terms: Terms, messages: list[Message]) -> ev.CallSent:
        """Journal a call that is about to be sent, if no limit forbids it."""
        bench = self.bench
        expected = tokens.estimate(bench.history, terms.model, sum(len(m.text) for m in messages))
        reserved = _spent(expected, terms.cost(expected, 0))
        in_step = time.monotonic() - bench.step_began
        if reason := limits.forbids(bench.history, terms, expected, in_step) or bench.ledger.reserve(reserved):
            raise BudgetExhausted(reason)
        order = ev.CallSent(
            step=bench.step,
            call=self.call,
            attempt=bench.history.sent.get((bench.step, self.call), 0),
            role=purpose.role,
            depth=bench.history.depth,
            candidate_id=self.candidate_id,
            model=terms.model,
            prompt_blob=self._keep(messages),
            expected_tokens=expected,
            expected_cost_usd=terms.cost(expected, 0),
            output_limit=purpose.output_limit or terms.output_limit,
        )
        bench.emit(order)
        return order

    def _keep(self, messages: list[Message]) -> str:
        plain = [{"role": m.role, "text": m.text} | ({"parts": m.parts} if m.parts else {}) for m in messages]
        return self.bench.blobs.put(codec.dumps(plain))

    def _settled(self, completion: Completion, order: ev.CallSent, messages: list[Message]) -> Completion:
        told = self._told(completion, order.prompt_blob, sum(len(m.text) for m in messages))
        actual = _spent((completion.input_tokens or 0) + (completion.output_tokens or 0), completion.cost_usd)
        self.bench.ledger.settle(_spent(order.expected_tokens, order.expected_cost_usd), actual)
        return told

    def _told(self, completion: Completion, prompt_blob: str, prompt_characters: int) -> Completion:
        """Journal a reply."""
        bench = self.bench
        is_counted = completion.input_tokens is not None and completion.output_tokens is not None
        characters = prompt_characters + len(completion.text)
        bench.emit(
            ev.ModelCalled(
                step=bench.step,
                call=self.call,
                role=self.purpose.role,
                depth=bench.history.depth,
                candidate_id=self.candidate_id,
                model=completion.model,
                prompt_blob=prompt_blob,
                reply_blob=bench.blobs.put(completion.text),
                input_tokens=completion.input_tokens,
                output_tokens=completion.output_tokens,
                cached_tokens=completion.cached_tokens,
                reasoning_tokens=completion.reasoning_tokens,
                cost_usd=completion.cost_usd,
                seconds=completion.seconds,
                finish_reason=completion.finish_reason,
                is_profile_exposed=self.is_exposed,
                prompt_characters=prompt_characters,
                assumed_tokens=0 if is_counted else tokens.estimate(bench.history, completion.model, characters),
            )
        )
        return completion


def raised_limit(terms: Terms, cut: Completion) -> int | None:
    """The output limit to ask with after a reply was cut off, in tokens; None when no larger one may be asked for."""
    reached = max(terms.output_limit or 0, cut.output_tokens or 0)
    wanted = max(2 * reached, SMALLEST_RAISE)
    limit = min(wanted, terms.longest_reply or wanted, terms.window // 2)
    return limit if limit > reached else None


def close_lost_call(bench: Bench) -> None:
    """End a call that a killed engine left open: what had arrived is kept, and it counts as spent."""
    order = bench.history.open_call
    if order is not None:
        lost = CallError(CallFailure.LOST, "the engine ended while the reply was coming in", is_charged=True)
        lost.text = bench.heard()
        end_call(bench, order, bench.speaker.terms(bench.purpose(order.role, order.candidate_id)), lost, None)


def end_call(
    bench: Bench, order: ev.CallSent, terms: Terms | None, error: CallError, pause: float | None, seconds: float = 0.0
) -> None:
    """Journal that a call gave no usable reply, with what it cost as far as that can be told."""
    counted, written = error.usage, tokens.estimate(bench.history, order.model, len(error.text))
    read: int | None = order.expected_tokens
    if counted is not None:
        read, written = counted.input, counted.output or 0
    elif not error.is_charged:
        read, written = 0, 0
    cost = 0.0 if not error.is_charged else terms.cost(read or 0, written) if terms else None
    bench.emit(
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
            reply_blob=bench.blobs.put(error.text) if error.text else None,
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
    bench.ledger.settle(expected, _spent((read or 0) + written, cost) if error.is_charged else Spent())


def _spent(count: int, cost: float | None) -> Spent:
    return Spent(1, count, cost or 0.0, int(cost is None))


def _read(bench: Bench, paid: ev.ModelCalled) -> Completion:
    return Completion(
        text=bench.blobs.get(paid.reply_blob),
        model=paid.model,
        finish_reason=paid.finish_reason,
        seconds=paid.seconds,
        input_tokens=paid.input_tokens,
        output_tokens=paid.output_tokens,
    )
