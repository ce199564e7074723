"""What the judge and the coder are asked: prompt files with their slots filled from the run. Knows no replies."""

from __future__ import annotations

import json

from engine import prompting
from engine.actions import Ask
from engine.context import RunContext
from engine.llm import Message
from engine.patching.edits import numbered
from engine.steps.conversation import (
    as_code,
    change_since_parent,
    device_facts,
    earlier_steps,
    hint_section,
    open_conversation,
    rule_section,
    timing_line,
)
from engine.steps.evaluate import describe_failure

SYSTEM = "coder_judge/system_judge.md"


def judge(context: RunContext, ask: Ask) -> list[Message]:
    """One point about a kernel: its fault where it failed, its bottleneck where it is correct."""
    candidate, record = context.candidate(ask.about), context.record
    common = {
        "task": as_code(context.task.source),
        "listing": numbered(context.source(candidate)),
        "earlier": earlier_steps(record, "round"),
        "rules": rule_section(record.steering.rules),
        "hint": hint_section(record.pending_hints),
    }
    if candidate.has_failed:
        return open_conversation(
            context,
            ask,
            "coder_judge/judge_failed.md",
            SYSTEM,
            failure=describe_failure(candidate),
            change=change_since_parent(context, candidate),
            guide=prompting.text("debugging.md").strip(),
            **common,
        )
    summary = candidate.profiled.summary.strip() if candidate.profiled and ask.shows_profile else ""
    return open_conversation(
        context,
        ask,
        "coder_judge/judge_correct.md",
        SYSTEM,
        timing=timing_line(candidate),
        device=device_facts(record),
        profile=prompting.fill("profile.md", summary=summary) if summary else "",
        guide=prompting.for_class("guides", record.kernel_class, ".md").strip(),
        **common,
    )


def rewrite(context: RunContext, ask: Ask) -> list[Message]:
    """The kernel once more, with the judge's point."""
    candidate, record = context.candidate(ask.about), context.record
    common = {
        "task": as_code(context.task.source),
        "kernel": as_code(context.source(candidate)),
        "review": review_of(context, candidate.candidate_id),
        "rules": rule_section(record.steering.rules),
        "hint": hint_section(record.pending_hints),
    }
    if candidate.has_failed:
        failure = describe_failure(candidate)
        return open_conversation(context, ask, "coder_judge/rewrite_failed.md", failure=failure, **common)
    timing = timing_line(candidate)
    return open_conversation(context, ask, "coder_judge/rewrite_correct.md", timing=timing, **common)


def review_of(context: RunContext, candidate_id: str) -> str:
    """The last thing that the judge said of a kernel, a line for each field."""
    said = [one for one in context.record.reviews.values() if one.candidate_id == candidate_id and not one.problem]
    if not said:
        return "(nothing)"
    fields = json.loads(context.blobs.get(said[-1].text_blob))
    return "\n".join(f"{name.capitalize()}: {text}" for name, text in fields.items())
