"""What the prompts of all methods share: the opening, a first kernel, hints, what was measured. Knows slots, not
decisions."""

from __future__ import annotations

from collections.abc import Sequence

from engine import prompting
from engine.actions import Ask
from engine.context import RunContext
from engine.llm import Message
from engine.prompting import Part, compose
from engine.record import Candidate, Record
from storage.events import CommandEffective
from storage.policy import EVERYTHING, PRECISIONS, Policy
from storage.records import Command, DepthOutcome, KernelClass
from storage.verbs import Rule


def open_conversation(
    context: RunContext, ask: Ask, name: str, system_name: str = "system.md", **values: str
) -> list[Message]:
    """System message and the first user message, from prompt files, as much of it as the model's window holds."""
    machine = prompting.text(prompting.for_toolchain("toolchains", context.toolchain.name)).strip()
    told = {"toolchain": machine, **allowed(context.task.policy)}
    system = prompting.fill(system_name, **{slot: told[slot] for slot in prompting.slots(system_name)})
    prompt = compose(name, context.room(ask.label, ask.about, len(system)), **values)
    return [Message("system", system, {Part.INSTRUCTIONS: len(system)}), prompt]


def allowed(policy: Policy) -> dict[str, str]:
    """What the task leaves to PyTorch, and how exact a kernel must be, in a system prompt's words."""
    operators = policy.library_operators
    if EVERYTHING in operators:
        library = prompting.text("policy/all.md")
    elif operators:
        library = prompting.fill("policy/some.md", operators=", ".join(f"`{name}`" for name in operators))
    else:
        library = prompting.text("policy/own.md")
    # Runs made before the classes were checked may name another: it is judged as fp32.
    precision = policy.precision if policy.precision in PRECISIONS else PRECISIONS[0]
    return {"library": library.strip(), "precision": prompting.text(f"policy/{precision}.md").strip()}


def synthesise(context: RunContext, ask: Ask) -> list[Message]:
    """Write a first kernel."""
    record, examples = context.record, prompting.for_toolchain("examples", context.toolchain.name)
    return open_conversation(
        context,
        ask,
        "synthesise.md",
        task=as_code(context.task.source),
        example=as_code(prompting.for_class(examples, record.kernel_class, ".py")),
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


def as_code(source: str) -> str:
    """A fenced Python block."""
    return f"```python\n{source.rstrip()}\n```"


def timing_line(candidate: Candidate) -> str:
    """What was measured of a kernel, in one line."""
    if candidate.timed is None:
        return "not timed"
    t = candidate.timed
    return (
        f"{t.latency_ms:.4g} ms against {t.baseline_latency_ms:.4g} ms of the {t.baseline} PyTorch reference: "
        f"{t.speedup:.3g}x (95 % interval {t.speedup_interval[0]:.3g} to {t.speedup_interval[1]:.3g})"
    )


def earlier_steps(record: Record, word: str) -> str:
    """One line for each step index so far, by the name that a method has for them."""
    lines = []
    for done in record.concluded:
        candidate = record.candidates.get(done.candidate_id or "")
        what = candidate.created.summary if candidate else "no kernel"
        if done.outcome is DepthOutcome.ACCEPTED and candidate and candidate.timed:
            lines.append(f"- {word} {done.depth}: {what}: {candidate.timed.speedup:.3g}x")
        elif done.outcome is DepthOutcome.IMPORTED:
            lines.append(f"- {word} {done.depth}: {what}: {done.reason}")
        else:
            lines.append(f"- {word} {done.depth}: {what}: given up ({done.reason})")
    return "\n".join(lines) or "- none yet"


def change_since_parent(context: RunContext, candidate: Candidate) -> str:
    """The last edit of a kernel as a diff."""
    blob = candidate.created.diff_blob
    if blob is None:
        return "This is a first version; there is no earlier kernel to compare with."
    return f"The last change, as a unified diff:\n```diff\n{context.blobs.get(blob).rstrip()}\n```"


def device_facts(record: Record) -> str:
    """What was measured of the device, and how fast it allows the task to be."""
    limit = record.limit
    if limit is None:
        return "not measured"
    return (
        f"{limit.device}: {limit.bandwidth_gb_s:.4g} GB/s of memory bandwidth and {limit.peak_gflop_s:.4g} GFLOP/s, "
        f"both measured. The operation needs at least {limit.min_bytes / 1e6:.4g} MB of memory traffic and "
        f"{limit.min_flop / 1e9:.4g} GFLOP, so no correct kernel takes less than {limit.limit_ms:.4g} ms."
    )
