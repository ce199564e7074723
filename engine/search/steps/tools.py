"""A turn in which the model calls tools, one reply after the other: each call is answered from the journal after a
crash. Knows no method and no endpoint."""

from __future__ import annotations

from engine.search import limits
from engine.search.actions import Ask
from engine.search.calling import reply_to
from engine.search.context import RunContext
from engine.search.llm import Completion, Message
from engine.search.llm.tools import ROLE, ToolCall, read_calls
from engine.search.steps.tool_calls import NONE_LEFT, answered, call_tool


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
    if (earlier := answered(context, call, number)) is not None:
        return earlier
    refusal = "" if used < ask.tools else NONE_LEFT
    if not refusal and (reason := limits.exhausted(context.record)):
        refusal = f"The run's {reason}. {NONE_LEFT}"
    return call_tool(context, ask.about, call, number, tool_call, refusal).text
