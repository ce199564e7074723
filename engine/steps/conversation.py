"""What every writing prompt shares: system text, hints, toolchain notes. Knows slots, not decisions."""

from __future__ import annotations

from collections.abc import Sequence

from engine import prompting
from engine.actions import Ask
from engine.context import RunContext
from engine.llm import Message
from engine.prompt_parts import Part, compose
from storage.events import CommandEffective
from storage.records import Command
from storage.verbs import Rule


def open_conversation(context: RunContext, ask: Ask, name: str, **values: str) -> list[Message]:
    """System message and the first user message, from a prompt file, as much of it as the model's window holds."""
    system = prompting.fill("system.md", toolchain=prompting.text(f"toolchains/{context.toolchain.name}.md").strip())
    prompt = compose(name, context.room(ask.label, ask.about, len(system)), **values)
    return [Message("system", system, {Part.INSTRUCTIONS: len(system)}), prompt]


def hint_section(hints: list[Command]) -> str:
    """The part of a prompt that carries a person's hints; empty without any."""
    if not hints:
        return ""
    return prompting.fill("hint.md", hints="\n".join(f"- {hint.argument.strip()}" for hint in hints))


def rule_section(rules: Sequence[Rule]) -> str:
    """The part of a prompt that carries what a person bans or requires; empty without any."""
    if not rules:
        return ""
    return prompting.fill("rules.md", rules="\n".join(f"- {rule}" for rule in rules))


def settle_hints(context: RunContext, hints: list[Command]) -> None:
    """Journal that a prompt carried these hints."""
    for hint in hints:
        if hint.command_id not in context.record.settled_commands:
            context.emit(CommandEffective(hint.command_id, context.step, f"in the prompt of step {context.step}"))


def as_code(source: str) -> str:
    """A fenced Python block."""
    return f"```python\n{source.rstrip()}\n```"
