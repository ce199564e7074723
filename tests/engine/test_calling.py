"""Calls of a run to a real HTTP server with faults: what is sent, what is counted, and what a kill or a stop leaves.

The server counts requests: what the journal says was paid for is held against them.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest

from engine.errors import BudgetExhausted, CallError, ModelError, StopRequested
from engine.evaluator.request import Evaluator
from engine.search import arrived, loop
from engine.search.arrived import Arrived
from engine.search.calling import reply_to, take_arrived
from engine.search.context import RunContext
from engine.search.daily import Ledger, Spent
from engine.search.human.inbox import Inbox
from engine.search.llm import Completion, Message
from engine.search.llm.endpoint import EndpointModel
from engine.search.llm.prices import Price
from storage.results.hardware_limit import HardwareLimit
from storage.run import events as ev
from storage.run.blobs import Blobs
from storage.run.journal import Journal
from storage.run.models import CallFailure, ModelOptions
from storage.run.settings import Budget, RunState, StepKind
from storage.run.steering import commands
from storage.run.steering.verbs import CommandKind
from tests.chat_server import Act, ChatServer, Handler, drops, fails, hangs, refuses, says, sends, serving
from tests.engine.contexts import open_context
from tests.engine.story import asks
from tests.engine.test_steering import Meanwhile

HELLO = [Message("user", "hello " * 100)]
OPTIONS = ModelOptions(model="tester", silence_s=5.0)
PRICE = Price(1.0, 0.1, 10.0)
Open = Callable[..., RunContext]


class Killed(BaseException):
    """The engine ends here, without a last word."""


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with serving(says("fine")) as chat:
        yield chat


@pytest.fixture
def opened(server: ChatServer, tmp_path: Path) -> Iterator[Open]:
    """Open the run's context, again and again, as a new engine would; waiting only lets fake time pass."""
    models: list[EndpointModel] = []

    def opening(options: ModelOptions = OPTIONS, price: Price | None = PRICE, **settings: object) -> RunContext:
        context = open_context(tmp_path, (), None, **settings)
        models.append(EndpointModel(options, server.address, "sk-planted-key", price))
        context.model, context.ledger = models[-1], Ledger(tmp_path)
        context.sleep, context.chance = lambda seconds: None, lambda: 0.0
        context.interrupt = Inbox(context, lambda seconds: None).interrupt
        return context

    yield opening
    for model in models:
        model.close()


def ask(context: RunContext, step: int = 1, call: int = 0) -> str:
    if context.record.in_flight is None or context.record.in_flight.step != step:
        context.emit(ev.StepStarted(step, StepKind.SYNTHESISE, 0, None))
    context.step = step
    return reply_to(context, asks("synthesise"), call, HELLO).text


def events(context: RunContext, *kinds: type) -> list[ev.Event]:
    return [entry.event for entry in context.journal.entries if isinstance(entry.event, kinds)]


def failures(context: RunContext) -> list[ev.CallFailed]:
    return [event for event in events(context, ev.CallFailed) if isinstance(event, ev.CallFailed)]


def test_a_call_is_in_the_journal_before_it_is_sent(server: ChatServer, opened: Open) -> None:
    context, seen = opened(), list[list[str]]()

    def look(handler: Handler) -> None:
        seen.append(kinds(context))
        says("fine")(handler)

    server.acts = [look]
    assert ask(context) == "fine"
    assert seen == [["StepStarted", "CallSent"]]
    assert kinds(context)[1:] == ["CallSent", "ModelCalled"]
    assert context.record.usage.cost_usd == pytest.approx((7 * 1.0 + 4 * 0.1 + 7 * 10.0) / 1e6)


def kinds(context: RunContext) -> list[str]:
    lines = context.folder.journal_file.read_text().splitlines()
    return [json.loads(line)["kind"] for line in lines]


def test_a_rate_limit_is_waited_for_as_long_as_asked_and_costs_nothing(server: ChatServer, opened: Open) -> None:
    server.acts = [fails(429, "slow down", retry_after="7"), fails(500), says("fine")]
    context, waited = opened(), list[float]()
    context.sleep = waited.append
    assert ask(context) == "fine"
    assert [(f.failure, f.is_charged, f.retry_in_s) for f in failures(context)] == [
        (CallFailure.RATE_LIMITED, False, 7.0),
        (CallFailure.SERVER_ERROR, False, 1.0),
    ]
    assert sum(waited) == pytest.approx(8.0)
    assert (len(server.requests), context.record.usage.model_calls) == (3, 1)


@pytest.mark.parametrize(
    ("act", "tries", "charged"),
    [
        (fails(429), 8, 0),
        (fails(500), 6, 0),
        (fails(401, "no such key"), 1, 0),
        (drops("half"), 2, 2),
        (says(), 2, 2),
        (sends("data: {not json\n\n"), 2, 2),
        (sends("<html>Sign in</html>", "text/html"), 1, 0),
        (refuses("I will not"), 1, 1),
        (says("x" * 2_100_000), 1, 1),
    ],
)
def test_tries_are_bounded_and_every_one_that_may_cost_is_counted(
    server: ChatServer, opened: Open, act: Act, tries: int, charged: int
) -> None:
    server.acts, context = [act], opened()
    with pytest.raises(ModelError):
        ask(context)
    assert len(server.requests) == len(events(context, ev.CallSent)) == len(failures(context)) == tries
    assert context.record.usage.model_calls == charged
    assert failures(context)[-1].retry_in_s is None
    assert context.record.usage.cost_usd is not None


def test_what_came_of_a_broken_call_is_kept(server: ChatServer, opened: Open) -> None:
    server.acts, context = [drops("half a reply")], opened()
    with pytest.raises(CallError):
        ask(context)
    blob = failures(context)[0].reply_blob
    assert blob is not None
    assert context.blobs.get(blob) == "half a reply"


def test_a_reply_that_was_cut_off_is_asked_for_once_more_with_a_larger_limit(server: ChatServer, opened: Open) -> None:
    server.acts, context = [says("half", finish="length")], opened(ModelOptions(model="m", max_output=6000))
    assert context.record.calls == {}
    assert ask(context) == "half"
    assert [request["max_tokens"] for request in server.requests] == [6000, 12000]
    assert [event.finish_reason for event in events(context, ev.ModelCalled)] == ["length", "length"]  # type: ignore[union-attr]
    assert ask(opened()) == "half"
    assert len(server.requests) == context.record.usage.model_calls == 2


def test_a_kill_between_two_halves_of_a_cut_off_reply_buys_only_the_second(server: ChatServer, opened: Open) -> None:
    server.acts, context = [says("half", finish="length"), says("whole")], opened()
    context.listeners.append(killing(ev.ModelCalled))
    with pytest.raises(Killed):
        ask(context)
    assert ask(opened()) == "whole"
    assert len(server.requests) == 2


def killing(kind: type) -> Callable[[object], None]:
    def listener(entry: object) -> None:
        if isinstance(getattr(entry, "event", None), kind):
            raise Killed

    return listener


@pytest.mark.parametrize("kind", [ev.CallSent, ev.ModelCalled])
def test_a_budget_of_n_calls_never_makes_call_n_plus_one_whatever_kills_the_engine(
    server: ChatServer, opened: Open, kind: type
) -> None:
    budget = Budget(model_calls=3)
    for _ in range(8):
        context = opened(budget=budget)
        context.listeners.append(killing(kind))
        with suppress(Killed, BudgetExhausted):
            ask(context, step=context.record.steps_finished + 1)
        if context.record.calls.get((context.step, 0)):
            context.listeners.clear()
            context.emit(ev.StepFinished(context.step, StepKind.SYNTHESISE, 1.0, "created"))
    assert len(server.requests) == (3 if kind is ev.ModelCalled else 0)
    assert opened(budget=budget).record.usage.model_calls == 3


def test_failed_tries_that_may_cost_are_within_the_budget_too(server: ChatServer, opened: Open) -> None:
    server.acts, context = [drops("half")], opened(budget=Budget(model_calls=1))
    with pytest.raises(BudgetExhausted):
        ask(context)
    assert len(server.requests) == 1


def test_a_call_that_was_open_when_the_engine_was_killed_is_counted_by_what_had_arrived(
    server: ChatServer, opened: Open
) -> None:
    server.acts, context = [hangs("x" * 300), says("fine")], opened()

    def killed() -> None:
        if context.folder.stream_file.stat().st_size:
            raise Killed

    context.interrupt = killed
    with pytest.raises(Killed):
        ask(context)
    again = opened()
    assert ask(again) == "fine"
    (lost,) = failures(again)
    assert (lost.failure, lost.is_charged, lost.is_estimated, lost.input_tokens, lost.output_tokens) == (
        CallFailure.LOST, True, True, 200, 100,
    )  # fmt: skip
    assert lost.cost_usd == pytest.approx((200 * 1.0 + 100 * 10.0) / 1e6)
    assert again.record.usage.model_calls == 2


def ended(*_: object) -> str:
    raise Killed


def full(*_: object) -> str:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("breaks", [ended, full])
@pytest.mark.parametrize("where", ["the reply's text", "the reply's event"])
def test_a_whole_reply_is_not_bought_again_whatever_ends_the_engine_while_it_is_journaled(
    server: ChatServer, opened: Open, monkeypatch: pytest.MonkeyPatch, breaks: Callable[..., str], where: str
) -> None:
    server.acts, context = [says("fi", "ne"), says("another")], opened()
    put, append = context.blobs.put, context.journal.append
    texts, kinds = ("fine", ev.ModelCalled) if where == "the reply's text" else ("", ev.ModelCalled)
    with monkeypatch.context() as patched:
        patched.setattr(Blobs, "put", lambda blobs, text: breaks() if text == texts else put(text))
        patched.setattr(Journal, "append", lambda one, event: breaks() if isinstance(event, kinds) else append(event))
        with pytest.raises((Killed, OSError)):
            ask(context)
    again = opened()
    take_arrived(again)
    assert ask(again) == "fine"
    (called,) = events(again, ev.ModelCalled)
    assert isinstance(called, ev.ModelCalled)
    assert (called.input_tokens, called.output_tokens, called.finish_reason) == (11, 7, "stop")
    assert (len(server.requests), failures(again), again.ledger.spent().calls) == (1, [], 1)
    take_arrived(opened())
    assert len(events(opened(), ev.ModelCalled)) == 1
    assert ask(opened(), step=2) == "another", "what is kept of an earlier call is no reply to this one"


def test_a_reply_that_was_kept_in_part_is_none(server: ChatServer, opened: Open) -> None:
    server.acts, context = [hangs("half"), says("fine")], opened()

    def killed() -> None:
        if context.folder.stream_file.stat().st_size:
            raise Killed

    context.interrupt = killed
    with pytest.raises(Killed):
        ask(context)
    whole = Arrived(1, 0, 0, False, 0, Completion("stale", "tester", "stop", 1.0))
    arrived.keep(context.arrived_file, whole)
    kept = context.arrived_file.read_bytes()
    assert list(arrived.kept(context.folder.path)) == [whole]
    for damaged in (
        kept[:80] + b"\0" * 900,
        kept[:80] + kept[70:],
        b"",
        b"\xff" * 90,
        kept.replace(b"stale", b"fresh"),
    ):
        context.arrived_file.write_bytes(damaged)
        assert list(arrived.kept(context.folder.path)) == []
    again = opened()
    take_arrived(again)
    assert ask(again) == "fine"
    assert [one.failure for one in failures(again)] == [CallFailure.LOST]


def test_no_reply_is_bought_that_could_not_be_kept(
    server: ChatServer, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = opened()
    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", full)
        with pytest.raises(OSError, match="No space left") as told:
            ask(context)
    assert told.value.filename == str(context.arrived_file)
    assert (server.requests, events(context, ev.CallSent), context.ledger.spent().calls) == ([], [], 0)
    assert ask(opened()) == "fine"


def test_a_reply_is_taken_though_nobody_can_watch_it_come_in(server: ChatServer, opened: Open, tmp_path: Path) -> None:
    context = opened()
    context.stream_file.symlink_to("/dev/full")
    assert ask(context) == "fine"


@pytest.mark.parametrize("kind", [CommandKind.STOP, CommandKind.PAUSE])
def test_stop_and_pause_break_off_a_reply_that_is_coming_in(
    server: ChatServer, opened: Open, kind: CommandKind
) -> None:
    server.acts, context = [hangs("so far"), says("fine")], opened()
    interrupt = context.interrupt

    def person() -> None:
        if context.folder.stream_file.stat().st_size and not context.folder.commands_file.exists():
            commands.send(context.folder.commands_file, kind)
        interrupt()

    context.interrupt = person
    with pytest.raises(StopRequested):
        ask(context)
    (cancelled,) = failures(context)
    assert cancelled.failure is CallFailure.CANCELLED
    assert context.blobs.get(cancelled.reply_blob or "") == "so far"
    assert context.folder.stream_file.read_text() == ""


def test_a_stop_is_obeyed_while_the_engine_waits_for_the_next_try(server: ChatServer, opened: Open) -> None:
    server.acts, context = [fails(429, retry_after="600")], opened()
    context.sleep = lambda seconds: void(commands.send(context.folder.commands_file, CommandKind.STOP))
    with pytest.raises(StopRequested):
        ask(context)
    assert len(server.requests) == 1


def void(_: object) -> None:
    return None


def test_an_unknown_price_is_no_price_of_zero(server: ChatServer, opened: Open) -> None:
    context = opened(price=None)
    assert ask(context) == "fine"
    assert context.record.usage.cost_usd is None
    limited = opened(price=None, budget=Budget(cost_usd=5.0))
    limited.record.budget = Budget(cost_usd=5.0)
    with pytest.raises(BudgetExhausted, match="unknown"):
        ask(limited, step=2)
    assert len(server.requests) == 1


def test_tokens_that_the_endpoint_does_not_count_are_unknown_and_yet_kept_to(server: ChatServer, opened: Open) -> None:
    server.acts, context = [says("x" * 300, usage=None)], opened(budget=Budget(tokens=600))
    ask(context)
    (call,) = context.record.calls.values()
    assert (call.input_tokens, call.assumed_tokens, context.record.usage.tokens) == (None, 300, 0)
    ask(context, call=1)
    with pytest.raises(BudgetExhausted, match="600 of 600 tokens"):
        ask(context, call=2)


def test_a_prompt_that_alone_would_exceed_the_money_is_not_sent(server: ChatServer, opened: Open) -> None:
    context = opened(budget=Budget(cost_usd=0.0001))
    with pytest.raises(BudgetExhausted, match="would exceed the 0.0001 US dollars"):
        ask(context)
    assert server.requests == []


def test_a_day_has_a_limit_over_all_runs(server: ChatServer, opened: Open, tmp_path: Path) -> None:
    (tmp_path / "budget.toml").write_text("[day]\ncalls = 2\n")
    Ledger(tmp_path).reserve(Spent(1, 10, 0.1))
    context = opened()
    ask(context)
    assert [(w.limit, w.used, w.allowed) for w in events(context, ev.BudgetWarned)] == [("calls of a day", 2, 2)]  # type: ignore[union-attr]
    with pytest.raises(BudgetExhausted, match="daily limit reached: 2 of 2 calls used by all runs"):
        ask(context, call=1)
    assert len(server.requests) == 1
    spent = Ledger(tmp_path).spent()
    assert (spent.calls, spent.tokens, spent.unpriced) == (2, 28, 0)


def test_a_try_that_cost_nothing_is_given_back_to_the_day(server: ChatServer, opened: Open, tmp_path: Path) -> None:
    server.acts = [fails(429), says("fine")]
    ask(opened())
    assert Ledger(tmp_path).spent().calls == 1


def test_more_budget_lets_a_run_go_on(server: ChatServer, opened: Open) -> None:
    context = opened(budget=Budget(model_calls=1))
    ask(context)
    with pytest.raises(BudgetExhausted):
        ask(context, call=1)
    commands.send(context.folder.commands_file, CommandKind.SET_BUDGET, "calls=2 cost=none")
    Inbox(context).take()
    assert ask(context, call=1) == "fine"
    assert opened().record.budget == Budget(model_calls=2)
    with pytest.raises(BudgetExhausted):
        ask(context, call=2)
    assert len(server.requests) == 2


def test_the_length_of_a_token_is_learnt_from_the_endpoint(server: ChatServer, opened: Open) -> None:
    server.acts, context = [says("fine", usage={"prompt_tokens": 600, "completion_tokens": 1})], opened()
    ask(context)
    ask(context, call=1)
    first, second = (event for event in events(context, ev.CallSent) if isinstance(event, ev.CallSent))
    assert (first.expected_tokens, second.expected_tokens) == (200, 632)


class Unused:
    """A machine that no kernel reaches in these runs."""

    name = "cpu"

    def limit(self, task: object) -> HardwareLimit:
        return HardwareLimit("none", 1.0, 1.0, 1, 1)


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (refuses("I will not write that"), "I will not write that"),
        (fails(401, "no such key"), "no such key"),
        (sends("<html>Sign in</html>", "text/html"), "Sign in"),
        (drops("half"), "ended in the middle"),
        (hangs(), "sent no reply"),
    ],
)
def test_a_run_whose_model_gives_no_reply_waits_for_a_person_and_says_why(
    server: ChatServer, opened: Open, act: Act, said: str
) -> None:
    server.acts, context = [act], opened(ModelOptions(model="m", silence_s=0.6))
    context.toolchain = cast(Evaluator, Unused())
    states: list[RunState] = []
    person = Meanwhile(
        lambda: states.append(context.record.state),
        lambda: commands.send(context.folder.commands_file, CommandKind.STOP),
    )
    ended = loop.run(context, Inbox(context, person))
    (waiting,) = (
        e for e in events(context, ev.StateChanged) if isinstance(e, ev.StateChanged) and e.state == "waiting"
    )
    assert said in waiting.reason
    assert (states, ended.state) == ([RunState.WAITING], RunState.STOPPED)
    assert len(server.requests) == len(events(context, ev.CallSent))
    assert context.record.usage.model_calls == sum(failure.is_charged for failure in failures(context))
