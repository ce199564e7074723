"""What every writing prompt shares: system text, hints, toolchain notes. Knows slots, not decisions."""

from __future__ import annotations

from engine import prompting
from engine.bench import Bench
from engine.llm import Message
from storage.events import CommandEffective
from storage.records import Command


def open_conversation(bench: Bench, prompt: str) -> list[Message]:
    """System message and the first user message."""
    system = prompting.fill("system.md", toolchain=prompting.text(f"toolchains/{bench.toolchain.name}.md").strip())
    return [Message("system", system), Message("user", prompt)]


def hint_section(hints: list[Command]) -> str:
    """The part of a prompt that carries a person's hints; empty without any."""
    if not hints:
        return ""
    return prompting.fill("hint.md", hints="\n".join(f"- {hint.argument.strip()}" for hint in hints))


def settle_hints(bench: Bench, hints: list[Command]) -> None:
    """Journal that a prompt carried these hints."""
    for hint in hints:
        if hint.command_id not in bench.history.settled_commands:
            bench.emit(CommandEffective(hint.command_id, bench.step, f"in the prompt of step {bench.step}"))


def as_code(source: str) -> str:
    """A fenced Python block."""
    return f"```python\n{source.rstrip()}\n```"
