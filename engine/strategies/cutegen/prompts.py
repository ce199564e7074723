"""What CuTeGen asks the model: prompt files with their slots filled from the run. Knows prompts, not replies."""

from __future__ import annotations

from engine import prompting
from engine.actions import Ask
from engine.context import RunContext
from engine.llm import Message
from engine.patching.edits import numbered
from engine.steps.conversation import (
    as_code,
    change_since_parent,
    earlier_steps,
    hint_section,
    open_conversation,
    rule_section,
    timing_line,
)
from engine.steps.evaluate import describe_failure


def diagnose(context: RunContext, ask: Ask) -> list[Message]:
    """Explain a failure before anything is edited."""
    candidate = context.candidate(ask.about)
    return open_conversation(
        context,
        ask,
        "cutegen/diagnose.md",
        guide=prompting.text("debugging.md").strip(),
        task=as_code(context.task.source),
        failure=describe_failure(candidate),
        listing=numbered(context.source(candidate)),
        change=change_since_parent(context, candidate),
    )


def repair(context: RunContext, ask: Ask) -> list[Message]:
    """Turn a diagnosis into edits."""
    candidate, record = context.candidate(ask.about), context.record
    return open_conversation(
        context,
        ask,
        "cutegen/repair.md",
        failure=describe_failure(candidate),
        diagnosis=context.blobs.get(candidate.diagnosis_blob) if candidate.diagnosis_blob else "(none)",
        listing=numbered(context.source(candidate)),
        rules=rule_section(record.steering.rules),
        hint=hint_section(record.pending_hints),
        patch_format=prompting.text("patch_format.md").strip(),
    )


def optimise(context: RunContext, ask: Ask) -> list[Message]:
    """Apply exactly one optimisation to a correct kernel."""
    base, record = context.candidate(ask.about), context.record
    summary = base.profiled.summary.strip() if base.profiled and ask.shows_profile else ""
    return open_conversation(
        context,
        ask,
        "cutegen/optimise.md",
        task=as_code(context.task.source),
        listing=numbered(context.source(base)),
        timing=timing_line(base),
        earlier=earlier_steps(record, "depth"),
        guide=prompting.for_class("guides", record.kernel_class, ".md").strip(),
        profile=prompting.fill("profile.md", summary=summary) if summary else "",
        rules=rule_section(record.steering.rules),
        hint=hint_section(record.pending_hints),
        patch_format=prompting.text("patch_format.md").strip(),
    )
