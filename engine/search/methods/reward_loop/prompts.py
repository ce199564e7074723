"""What the reward loop asks the model: prompt files with their slots filled from the run. Knows no
replies."""

from __future__ import annotations

from dataclasses import dataclass

from engine.knowledge.rewards import SCALE
from engine.search import prompting
from engine.search.actions import Ask
from engine.search.context import RunContext
from engine.search.limits import RULE
from engine.search.llm import Message
from engine.search.methods.reward_loop.rewards import Rewarded, rewarded
from engine.search.prompting import Passage, Ranked
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
from storage.run.record import named

PAIRS_TOKENS = 6000
PAIRS = "Attempts so far, oldest first, each with its reward and its kernel:"


@dataclass(frozen=True, slots=True)
class Refine:
    """Write a kernel once more after its reward. `shown` is how many attempts the model is told of."""

    shown: int

    def __call__(self, context: RunContext, ask: Ask) -> list[Message]:
        """The messages."""
        candidate, record = context.candidate(ask.about), context.record
        earlier = _pairs(context, candidate.candidate_id, self.shown)
        common = {
            "task": reference(context),
            "scale": SCALE,
            "reward": _reward_of(rewarded(record), candidate.candidate_id),
            "kernel": as_code(context.source(candidate)),
            "rules": rule_section(record.steering.rules),
            "hint": hint_section(record.pending_hints),
        }
        if candidate.has_failed:
            name, failure = "reward_loop/refine_failed.md", describe_failure(candidate)
            return open_conversation(
                context, ask, name, failure=failure, earlier=earlier, guide=debugging(context), **common
            )
        summary = candidate.profiled.summary.strip() if candidate.profiled and ask.shows_profile else ""
        return open_conversation(
            context,
            ask,
            "reward_loop/refine_correct.md",
            timing=timing_line(candidate),
            headroom=briefing.headroom(record, candidate),
            profile=prompting.fill("profile.md", summary=summary) if summary else "",
            known=known(context, candidate, "Technique:"),
            earlier=earlier,
            guide=guide(context),
            **common,
        )


def _reward_of(attempts: list[Rewarded], name: str) -> str:
    rewards = [
        attempt.reward
        for attempt in attempts
        if attempt.candidate is not None and attempt.candidate.candidate_id == name
    ]
    return f"{rewards[-1]:.3g}" if rewards else "not given"


def _pairs(context: RunContext, about: str, shown: int) -> Ranked:
    """The last attempts, the newest worth most; of the kernel that the prompt is about the line alone."""
    pairs = rewarded(context.record)
    passages = [
        Passage(PAIRS, _pair(context, attempt, about), (float(attempt.index),))
        for attempt in pairs[max(0, len(pairs) - shown) :]
    ]
    return Ranked(tuple(passages), int(PAIRS_TOKENS * RULE))


def _pair(context: RunContext, attempt: Rewarded, about: str) -> str:
    lead = f"- attempt {attempt.index}, reward {attempt.reward:.3g}"
    if attempt.candidate is None:
        return f"{lead}: the reply held no kernel"
    record, created = context.record, attempt.candidate.created
    best = " (the best so far)" * (created.candidate_id == record.best_id)
    error = f" [{attempt.candidate.failure.partition('. ')[0]}]" if attempt.candidate.has_failed else ""
    lead = f"{lead}, {named(record, created.candidate_id)}{best}: {created.summary}{error}"
    return (
        f"{lead}; it stands below"
        if created.candidate_id == about
        else f"{lead}\n{as_code(context.source(attempt.candidate))}"
    )
