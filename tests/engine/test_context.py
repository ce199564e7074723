import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import BudgetExhausted, OffRecordingError
from engine.search.calling import reply_to
from engine.search.context import RunContext
from engine.search.llm import Message
from storage.run import events as ev
from storage.run.settings import Budget, StepKind
from tests.engine.contexts import SOURCE, add_candidate, open_context
from tests.engine.story import asks

HELLO = [Message("user", "hello")]


def begin_step(context: RunContext, step: int, kind: StepKind = StepKind.SYNTHESISE) -> None:
    context.step = step
    context.emit(ev.StepStarted(step, kind, 0, None))


def test_a_reply_is_journaled_with_prompt_and_reply_kept_whole(tmp_path: Path) -> None:
    context = open_context(tmp_path, [("synthesise", None, "the reply")])
    begin_step(context, 1)
    assert reply_to(context, asks("synthesise"), 0, HELLO).text == "the reply"
    call = context.record.calls[1, 0]
    assert context.blobs.get(call.reply_blob) == "the reply"
    assert json.loads(context.blobs.get(call.prompt_blob)) == [{"role": "user", "text": "hello"}]
    assert context.folder.stream_file.read_text() == ""


def test_a_reply_paid_for_before_a_crash_is_read_not_bought(tmp_path: Path) -> None:
    context = open_context(tmp_path, [("synthesise", None, "only one")])
    begin_step(context, 1)
    reply_to(context, asks("synthesise"), 0, HELLO)
    again = open_context(tmp_path, [])
    again.step = 1
    assert reply_to(again, asks("synthesise"), 0, HELLO).text == "only one"
    assert again.record.usage.model_calls == 1


def test_replies_about_one_kernel_come_in_order_and_then_run_out(tmp_path: Path) -> None:
    context = open_context(tmp_path, [("diagnose", SOURCE, "first"), ("diagnose", SOURCE, "second")])
    name = add_candidate(context)
    for step, expected in ((1, "first"), (2, "second")):
        begin_step(context, step, StepKind.DIAGNOSE)
        assert reply_to(context, asks("diagnose", name), 0, HELLO).text == expected
    begin_step(context, 3, StepKind.DIAGNOSE)
    with pytest.raises(OffRecordingError, match="its 2 replies for this kernel are used up"):
        reply_to(context, asks("diagnose", name), 0, HELLO)


def test_a_budget_of_n_calls_never_makes_call_n_plus_one_even_after_a_restart(tmp_path: Path) -> None:
    replies = [("synthesise", None, f"reply {n}") for n in range(5)]
    budget = Budget(depths=9, model_calls=2)
    context = open_context(tmp_path, replies, budget=budget)
    for step in (1, 2):
        begin_step(context, step)
        reply_to(context, asks("synthesise"), 0, HELLO)
    again = open_context(tmp_path, replies, budget=budget)
    begin_step(again, 3)
    with pytest.raises(BudgetExhausted, match="2 of 2 model calls"):
        reply_to(again, asks("synthesise"), 0, HELLO)
    assert again.record.usage.model_calls == 2


def test_a_budget_four_fifths_used_warns_once(tmp_path: Path) -> None:
    context = open_context(tmp_path, [("synthesise", None, "x")] * 5, budget=replace(Budget(), model_calls=5))
    for step in range(1, 6):
        begin_step(context, step)
        reply_to(context, asks("synthesise"), 0, HELLO)
    warned = [entry.event for entry in context.journal.entries if isinstance(entry.event, ev.BudgetWarned)]
    assert [(w.used, w.allowed) for w in warned] == [(4, 5)]
