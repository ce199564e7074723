"""What CuTeGen asks the model: prompt files with their slots filled from the run. Knows prompts, not replies."""

from __future__ import annotations

from engine.search import prompting
from engine.search.actions import Ask
from engine.search.context import RunContext
from engine.search.llm import Message
from engine.search.patching.edits import numbered
from engine.search.steps import briefing
from engine.search.steps.conversation import hint_section, open_conversation, reference, rule_section, timing_line
from engine.search.steps.evaluate import describe_failure
from engine.search.steps.guidance import debugging, guide, known, lacking
from engine.search.steps.history import changes, history, repairs


def diagnose(context: RunContext, ask: Ask) -> list[Message]:
    """Explain a failure before anything is edited."""
    candidate = context.candidate(ask.about)
    return open_conversation(
        context,
        ask,
        "cutegen/diagnose.md",
        guide=debugging(context),
        task=reference(context),
        failure=describe_failure(candidate),
        listing=numbered(context.source(candidate)),
        change=changes(context, candidate),
    )


def repair(context: RunContext, ask: Ask) -> list[Message]:
    """Turn a diagnosis into edits."""
    candidate, record = context.candidate(ask.about), context.record
    return open_conversation(
        context,
        ask,
        "cutegen/repair.md",
        task=reference(context),
        repairs=repairs(context, candidate),
        failure=describe_failure(candidate),
        guide=debugging(context),
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
        task=reference(context),
        listing=numbered(context.source(base)),
        timing=timing_line(base),
        headroom=briefing.headroom(record, base),
        earlier=history(record, base.candidate_id, "depth"),
        guide=guide(context),
        example=lacking(context, base),
        profile=prompting.fill("profile.md", summary=summary) if summary else "",
        known=known(context, base, "Technique:"),
        rules=rule_section(record.steering.rules),
        hint=hint_section(record.pending_hints),
        patch_format=prompting.text("patch_format.md").strip(),
    )
