"""What the prompts of all methods share: the opening, a first kernel, hints, what was measured. Knows slots, not
decisions."""

from __future__ import annotations

from collections.abc import Sequence

from engine.evaluator import tasks
from engine.evaluator.tasks.shown import Shown
from engine.search import exemplars, prompting
from engine.search.actions import Ask
from engine.search.context import RunContext
from engine.search.llm import Message
from engine.search.prompting import Ranked, compose
from engine.search.steps import briefing, guidance
from engine.search.steps.compiler import compiler_section
from engine.search.steps.evaluate import timing_words
from engine.search.steps.history import history
from storage.results.vocabulary import KernelClass
from storage.run.events import CommandEffective
from storage.run.record import Candidate
from storage.run.steering.verbs import Command, Rule


def open_conversation(
    context: RunContext, ask: Ask, name: str, system_name: str = "system.md", **values: str | Ranked
) -> list[Message]:
    """System message and the first user message, from prompt files, as much of it as the model's window holds."""
    language = context.language.name
    slots = briefing.fixed_slots(context.toolchain.name, context.task, context.record.limit, language)
    slots |= {"failure_rules": guidance.failure_rules(context)}
    slots |= {"tunables": briefing.tunables(language) if context.record.settings.tune else ""}
    system_name = prompting.for_language(system_name, language)
    system = prompting.message("system", system_name, **{slot: slots[slot] for slot in prompting.slots(system_name)})
    return [
        system,
        compose(prompting.for_language(name, language), context.room(ask.label, ask.about, len(system.text)), **values),
    ]


def synthesise(context: RunContext, ask: Ask) -> list[Message]:
    """Write a first kernel."""
    return _first_kernel(context, ask, history(context.record, None, "step"))


def sample(context: RunContext, ask: Ask) -> list[Message]:
    """Write a first kernel that is told of no other."""
    return _first_kernel(context, ask, "")


def _first_kernel(context: RunContext, ask: Ask, earlier: str | Ranked) -> list[Message]:
    record, language = context.record, context.language.name
    return open_conversation(
        context,
        ask,
        "synthesise.md",
        task=reference(context),
        fusion=guidance.fusion(context),
        headroom=briefing.room(record.limit),
        example=as_code(exemplars.opening(context.toolchain.name, record.kernel_class, language)),
        compiler=compiler_section(context),
        start=prompting.of_language("start", language),
        earlier=earlier,
        classes=", ".join(KernelClass),
        rules=rule_section(record.steering.rules),
        hint=hint_section(record.pending_hints),
    )


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


def reference(context: RunContext) -> str:
    """The task's text, and of modules that it imports what a kernel would otherwise have to replace unseen."""
    source = context.task.source
    shown = "\n\n".join(map(_module, tasks.shown.modules(source)))
    return f"{as_code(source)}\n\n{prompting.fill('imported.md', texts=shown).strip()}" if shown else as_code(source)


def _module(module: Shown) -> str:
    rest = f"\n\n# left out for its length: {', '.join(module.left_out)}" if module.left_out else ""
    return f"`{module.file}`:\n{as_code(module.text + rest)}"


def as_code(source: str) -> str:
    """A fenced Python block."""
    return f"```python\n{source.rstrip()}\n```"


def timing_line(candidate: Candidate) -> str:
    """What was measured of a kernel, in one line."""
    return timing_words(candidate.trusted) if candidate.trusted is not None else "not timed"
