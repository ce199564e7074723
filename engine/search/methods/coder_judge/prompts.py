"""What the judge and the coder are asked: prompt files with their slots filled from the run. Knows no replies."""

from __future__ import annotations

from engine.search import prompting
from engine.search.actions import Ask
from engine.search.context import RunContext
from engine.search.llm import Message
from engine.search.patching.edits import numbered
from engine.search.steps import briefing
from engine.search.steps.conversation import (
    as_code,
    hint_section,
    open_conversation,
    reference,
    rule_section,
    timing_line,
)
from engine.search.steps.evaluate import describe_failure
from engine.search.steps.guidance import debugging, guide, known
from engine.search.steps.history import changes, explanation, history

SYSTEM = "coder_judge/system_judge.md"


def judge(context: RunContext, ask: Ask) -> list[Message]:
    """One point about a kernel: its fault where it failed, its bottleneck where it is correct."""
    candidate, record = context.candidate(ask.about), context.record
    common = {
        "task": reference(context),
        "listing": numbered(context.source(candidate)),
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
            change=changes(context, candidate),
            earlier=history(record, candidate.created.base_id, "round", candidate.candidate_id),
            guide=debugging(context),
            **common,
        )
    summary = candidate.profiled.summary.strip() if candidate.profiled and ask.shows_profile else ""
    return open_conversation(
        context,
        ask,
        "coder_judge/judge_correct.md",
        SYSTEM,
        timing=timing_line(candidate),
        headroom=briefing.headroom(record, candidate),
        profile=prompting.fill("profile.md", summary=summary) if summary else "",
        known=known(context, candidate, "technique"),
        earlier=history(record, candidate.candidate_id, "round"),
        guide=guide(context),
        **common,
    )


def rewrite(context: RunContext, ask: Ask) -> list[Message]:
    """The kernel once more, with the judge's point."""
    candidate, record = context.candidate(ask.about), context.record
    common = {
        "task": reference(context),
        "kernel": as_code(context.source(candidate)),
        "review": explanation(context, candidate) or "(nothing)",
        "rules": rule_section(record.steering.rules),
        "hint": hint_section(record.pending_hints),
    }
    if candidate.has_failed:
        failure = describe_failure(candidate)
        return open_conversation(context, ask, "coder_judge/rewrite_failed.md", failure=failure, **common)
    timing = timing_line(candidate)
    return open_conversation(context, ask, "coder_judge/rewrite_correct.md", timing=timing, **common)
