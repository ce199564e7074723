"""A turn in which the model calls tools: each call is journaled before and after, and answered from the journal after a
crash. Knows stages of evaluation, not methods and no endpoint."""

from __future__ import annotations

import time

from engine.errors import ProfileUnavailable
from engine.search import limits
from engine.search.actions import Ask
from engine.search.calling import reply_to
from engine.search.context import RunContext
from engine.search.llm import Completion, Message
from engine.search.llm.tools import CHECK, COMPILE, ROLE, ToolCall, read_calls
from engine.search.steps.evaluate import describe_failed, timing_words
from storage.results.evaluation_results import CheckResult, CompileResult, headline
from storage.results.vocabulary import Verdict
from storage.run.events import ToolAnswered, ToolCalled

NONE_LEFT = "No tool call is left in this turn: send the final reply now."
UNREADABLE = "unreadable"
HAS = "done"


def converse(context: RunContext, ask: Ask, talk: list[Message]) -> Completion:
    """The reply after which the model calls no tool; at most `ask.tools` calls are carried out before it."""
    used = call = 0
    while True:
        left = max(0, ask.tools - used)
        completion = reply_to(context, ask, call, talk, tools_left=left)
        tool_calls = read_calls(completion.text) if completion.finish_reason != "length" else []
        if not tool_calls or not left:
            return completion
        answers = [
            _answer(context, ask, call, number, tool_call, used + number) for number, tool_call in enumerate(tool_calls)
        ]
        talk = [*talk, Message("assistant", completion.text), *(Message(ROLE, text) for text in answers)]
        used, call = used + len(tool_calls), call + 1


def _answer(context: RunContext, ask: Ask, call: int, number: int, tool_call: ToolCall, used: int) -> str:
    """What a call is answered; one that was answered before is read."""
    answered = context.record.tools.get((context.step, call, number))
    if answered is not None:
        return context.blobs.get(answered.text_blob)
    source, began = context.blobs.put(tool_call.source), time.monotonic()
    context.emit(
        ToolCalled(context.step, call, number, tool_call.tool, context.record.index_in_flight, ask.about, source)
    )
    if used >= ask.tools:
        outcome, summary, text = HAS, NONE_LEFT, NONE_LEFT
    elif reason := limits.exhausted(context.record):
        outcome, summary, text = HAS, reason, f"The run's {reason}. {NONE_LEFT}"
    elif tool_call.problem:
        outcome, summary, text = UNREADABLE, tool_call.problem, tool_call.problem
    else:
        outcome, summary, text = _carry_out(context, tool_call)
    blob, seconds = context.blobs.put(text), time.monotonic() - began
    context.emit(ToolAnswered(context.step, call, number, tool_call.tool, source, outcome, summary, blob, seconds))
    return text


def _carry_out(context: RunContext, tool_call: ToolCall) -> tuple[str, str, str]:
    """(verdict, a line for people, a text for the model)."""
    task, tools, source = context.task, context.toolchain, tool_call.source
    compiled: CompileResult = context.judge(tools.compile, task, source)
    if not compiled.is_ok:
        return _failed(compiled.verdict, compiled, None)
    if tool_call.tool == COMPILE:
        return Verdict.PASSED, "it compiles", "It compiles."
    checked: CheckResult = context.judge(tools.check, task, source)
    if checked.verdict is not Verdict.PASSED:
        return _failed(checked.verdict, compiled, checked)
    passed = f"it passes the check in {len(checked.trials)} trials"
    if tool_call.tool == CHECK:
        return Verdict.PASSED, passed, f"It compiles, and {passed}."
    timed = context.judge(tools.time, task, source)
    if isinstance(timed, CheckResult):
        return _failed(timed.verdict, compiled, timed)
    words = timing_words(timed)
    try:
        summary = context.judge(tools.profile, task, source, timed).summary.strip()
    except ProfileUnavailable as error:
        summary = f"No profile: {error}"
    return Verdict.PASSED, words, f"It is correct: {words}.\n\n{summary}"


def _failed(verdict: Verdict, compiled: CompileResult, checked: CheckResult | None) -> tuple[str, str, str]:
    return verdict, headline(checked or compiled), describe_failed(verdict, compiled, checked)
