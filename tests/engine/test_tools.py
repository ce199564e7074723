"""A turn in which the model calls tools, over HTTP and after a kill: what is sent, journaled, counted and bought
once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from engine.cli import experience
from engine.evaluator.request import Evaluator
from engine.search.actions import Ask
from engine.search.daily import Ledger
from engine.search.llm import Message
from engine.search.llm.endpoint import EndpointModel
from engine.search.llm.prices import Price
from engine.search.llm.tools import on_the_wire, read_calls
from engine.search.loop import take_step
from engine.search.methods.reward_loop.strategy import RewardLoop
from storage.run import events as ev
from storage.run.models import ModelOptions
from storage.run.settings import Budget
from tests.chat_server import Act, Handler, says, serving
from tests.engine.contexts import SOURCE, open_context
from tests.engine.real_toolchain import toolchain
from tests.guard.engine_side import NoToolchain

__all__ = ["toolchain"]

FINAL = f"Approach: plain\n```python\n{SOURCE}```\n"
BROKEN = "import torch\nclass ModelNew(torch.nn.Module:\n"
OPTIONS = {"tools": "auto", "max_tools": 2}


def calls(*made: tuple[str, str]) -> Act:
    """A reply that calls tools, its arguments in two pieces each."""

    def act(handler: Handler) -> None:
        handler.begin()
        handler.piece(content="Let me see.")
        for index, (name, text) in enumerate(made):
            handler.piece(tool_calls=[{"index": index, "id": f"x{index}", "function": {"name": name, "arguments": ""}}])
            for piece in (text[:5], text[5:]):
                handler.piece(tool_calls=[{"index": index, "function": {"arguments": piece}}])
        handler.end("tool_calls")

    return act


class Killed(BaseException):
    """The engine ends here."""


class Deadly(NoToolchain):
    """Ends the engine when it is asked to build."""

    def compile(self, *_: object) -> Any:
        raise Killed


def test_a_call_is_read_from_the_text_of_a_reply_and_sent_as_one() -> None:
    text = (
        'I try.\n```json\n{"tool": "check", "arguments": {"source": "a\\nb"}}\n{"tool": "fly", "arguments": {}}\n```\n'
    )
    check, other = read_calls(text)
    assert (check.tool, check.source, check.problem) == ("check", "a\nb", "")
    assert "There is no tool 'fly'" in other.problem
    assert "send the call again" in read_calls('{"tool": "check", "arguments": }')[0].problem
    assert read_calls(FINAL) == []
    sent = on_the_wire([Message("assistant", text), Message("tool", "right"), Message("tool", "no")])
    assert [one["role"] for one in sent] == ["assistant", "tool", "tool"]
    assert sent[0]["content"] == "I try."
    assert [one["id"] for one in sent[0]["tool_calls"]] == [one["tool_call_id"] for one in sent[1:]]
    assert on_the_wire([Message("tool", "alone")]) == [{"role": "user", "content": "alone"}]


def test_tools_are_called_within_a_turn_and_a_killed_engine_buys_nothing_twice(
    tmp_path: Path, toolchain: Evaluator
) -> None:
    tried = json.dumps({"source": BROKEN})
    with serving(calls(("compile", tried), ("check", tried), ("check", tried)), says(FINAL)) as server:
        for tools in (cast(Evaluator, Deadly("cpu")), toolchain):
            context = open_context(tmp_path, (), tools, strategy_options=OPTIONS, budget=Budget(model_calls=2))
            context.strategy, context.ledger = RewardLoop(), Ledger(tmp_path)
            context.model = EndpointModel(ModelOptions(model="tester"), server.address, "sk-key", Price(1.0, 0.1, 10.0))
            step = context.strategy.again(context.record, "synthesise", None)
            if tools is toolchain:
                take_step(context, step)
            else:
                with pytest.raises(Killed):
                    take_step(context, step)
            context.model.close()
        first, second = server.requests
    record = context.record
    assert [one["function"]["name"] for one in first["tools"]] == ["compile", "check", "profile"]
    assert "tool_choice" not in first
    assert second["tool_choice"] == "none"
    assert [one["role"] for one in second["messages"][-4:]] == ["assistant", "tool", "tool", "tool"]
    assert "does not compile" in second["messages"][-3]["content"] or "refused" in second["messages"][-3]["content"]
    assert "No tool call is left" in second["messages"][-1]["content"]
    assert [one.outcome for one in record.tools.values()][2] == "done"
    assert sum(isinstance(one, ev.ToolCalled) for one in record.events) == 4, "the one in flight begins again"
    assert record.usage.model_calls == 2
    (made,) = record.candidates.values()
    assert context.source(made) == SOURCE
    told = [json.loads(line) for line in experience.lines(context.folder)]
    assert [len(one["tools"]) for one in told] == [3, 0]
    assert told[0]["reward"] is None


def test_without_the_option_no_tools_are_offered(tmp_path: Path) -> None:
    context = open_context(tmp_path)
    ask = RewardLoop().again(context.record, "synthesise", None)
    assert isinstance(ask, Ask)
    assert ask.tools == 0
