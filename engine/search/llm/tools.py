"""What a model may call within one turn: compile, check and profile a kernel; an agent may screen and evaluate one too.
Knows the wire and the text of a reply, not what a tool does.

In a reply's text a call is one JSON object, `{"tool": NAME, "arguments": {...}}`, so that a reply is kept, read again
and played back as any other.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.search.llm import Message
from engine.search.patching.json_values import read_at
from engine.search.patching.reply import whole_characters

COMPILE, CHECK, PROFILE = "compile", "check", "profile"
TOOLS: Mapping[str, str] = {
    COMPILE: "Compile a kernel file. Returns whether it compiles, or the compiler's errors.",
    CHECK: "Compile a kernel file and compare it with the reference. Returns whether it is right, or what is wrong.",
    PROFILE: "Compile, check, time and profile a kernel file. Returns time, speed-up and what the profile shows.",
}
SCREEN, EVALUATE = "screen", "evaluate"
OF_AGENTS: Mapping[str, str] = {
    SCREEN: "Say at once what in the text of a kernel file would be refused. Builds and runs nothing. Free.",
    COMPILE: f"{TOOLS[COMPILE]} Free.",
    CHECK: f"{TOOLS[CHECK]} Costs one evaluation.",
    EVALUATE: "Check a kernel file and, if it is right, time it against eager PyTorch. Costs one evaluation.",
    PROFILE: f"{TOOLS[PROFILE]} Costs one evaluation.",
}
COSTLY = (CHECK, EVALUATE, PROFILE)  # what counts against an agent's evaluations
ROLE = "tool"  # of a message that answers a call
_SOURCE = {"type": "string", "description": "the whole Python file with class ModelNew, as in the final reply"}
_PARAMETERS = {
    "type": "object",
    "properties": {"source": _SOURCE},
    "required": ["source"],
    "additionalProperties": False,
}
_BEGIN = re.compile(r'^\{"tool": ', re.MULTILINE)
_FENCE = re.compile(r"\s*```json\s*$")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call in a reply. `source` is the kernel file; `problem` says why the call cannot be carried out."""

    tool: str
    source: str = ""
    arguments: str = ""
    problem: str = ""


def opening(name: str) -> str:
    """How the text of a call begins, before its arguments."""
    return f'{{"tool": {json.dumps(name)}, "arguments": '


CLOSING = "}"
MOST_CALLS = 64  # of one reply
UNREADABLE = "The arguments are no JSON object with the file in `source`: send the call again."


def read_calls(text: str) -> list[ToolCall]:
    """The calls in a reply, in their order, as many as one reply may hold; none in one that only holds text."""
    return [_read(text, match.start()) for match in itertools.islice(_BEGIN.finditer(text), MOST_CALLS)]


def _read(text: str, start: int) -> ToolCall:
    value, _, _ = read_at(text, start)
    if not isinstance(value, dict) or "arguments" not in value:
        name = text[start + len('{"tool": ') :][:80].split('"')[1:2]
        return ToolCall(name[0] if name and name[0] in TOOLS else COMPILE, "", "{}", UNREADABLE)
    tool, arguments = f"{value['tool']}"[:80], value["arguments"]
    whole, source = json.dumps(arguments), arguments.get("source") if isinstance(arguments, dict) else None
    if tool not in TOOLS:
        return ToolCall(tool, "", whole, f"There is no tool {tool!r}: use {', '.join(TOOLS)}.")
    if not isinstance(source, str):
        return ToolCall(tool, "", "{}", UNREADABLE)
    return ToolCall(tool, whole_characters(source), whole)


def declared(left: int) -> dict[str, Any]:
    """Request fields of chat completions that offer the tools, with so many calls left."""
    functions = [{"name": name, "description": about, "parameters": _PARAMETERS} for name, about in TOOLS.items()]
    tools = [{"type": "function", "function": function} for function in functions]
    return {"tools": tools} | ({} if left else {"tool_choice": "none"})


def on_the_wire(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """A conversation with its calls and their answers as chat completions have them."""
    sent, waiting = list[dict[str, Any]](), list[str]()
    for message in messages:
        calls = read_calls(message.text) if message.role == "assistant" else []
        if calls:
            waiting = [f"call_{len(sent)}_{number}" for number in range(len(calls))]
            content = _FENCE.sub("", message.text[: _first(message.text)]).strip()
            tool_calls = [
                {"id": name, "type": "function", "function": {"name": call.tool, "arguments": call.arguments}}
                for name, call in zip(waiting, calls, strict=True)
            ]
            sent.append({"role": "assistant", "content": content or None, "tool_calls": tool_calls})
        elif message.role == ROLE and waiting:
            sent.append({"role": ROLE, "tool_call_id": waiting.pop(0), "content": message.text})
        else:  # an answer whose call was left out to fit the window is a text like any other
            sent.append({"role": "user" if message.role == ROLE else message.role, "content": message.text})
    return sent


def _first(text: str) -> int:
    match = _BEGIN.search(text)
    return match.start() if match else len(text)
