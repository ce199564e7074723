"""What the evolving population asks the model: prompt files with their slots filled from the run. Knows no replies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.search import prompting
from engine.search.actions import Ask
from engine.search.context import RunContext
from engine.search.limits import RULE
from engine.search.llm import Message
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
from engine.search.steps.guidance import guide, known
from engine.search.steps.history import shortened
from storage.results.vocabulary import FAILED
from storage.run.record import Candidate, Record, named

TOLD_TOKENS, ARTIFACT = 2400, 800
ALIVE = "The population, fastest first; each figure is a speed-up over PyTorch:"
FAILURES = "What failed before, with its report; not to be sent again as it was:"


@dataclass(frozen=True, slots=True)
class Mutate:
    """Write one changed child of a kernel. `population` is told by name."""

    population: tuple[str, ...]

    def __call__(self, context: RunContext, ask: Ask) -> list[Message]:
        """The messages."""
        parent, record = context.candidate(ask.about), context.record
        summary = parent.profiled.summary.strip() if parent.profiled and ask.shows_profile else ""
        return open_conversation(
            context,
            ask,
            "evolve/mutate.md",
            earlier=_earlier_kernels(record, self.population, [parent.candidate_id]),
            kernel=as_code(context.source(parent)),
            timing=timing_line(parent),
            headroom=briefing.headroom(record, parent),
            profile=prompting.fill("profile.md", summary=summary) if summary else "",
            known=known(context, parent, "Technique:"),
            **_common(context),
        )


@dataclass(frozen=True, slots=True)
class Cross:
    """Write a child of two kernels, the one that is asked about and `second_id`."""

    population: tuple[str, ...]
    second_id: str

    def __call__(self, context: RunContext, ask: Ask) -> list[Message]:
        """The messages."""
        parent, second = context.candidate(ask.about), context.candidate(self.second_id)
        return open_conversation(
            context,
            ask,
            "evolve/cross.md",
            earlier=_earlier_kernels(context.record, self.population, [parent.candidate_id, second.candidate_id]),
            kernel=as_code(context.source(parent)),
            timing=timing_line(parent),
            second_kernel=as_code(context.source(second)),
            second_timing=timing_line(second),
            **_common(context),
        )


def _common(context: RunContext) -> dict[str, str]:
    record = context.record
    return {
        "task": reference(context),
        "guide": guide(context),
        "rules": rule_section(record.steering.rules),
        "hint": hint_section(record.pending_hints),
    }


def _earlier_kernels(record: Record, population: Sequence[str], parents: Sequence[str]) -> Ranked:
    """Who is alive, and the reports of what failed: the parents' own children are worth most, then the newest."""
    passages = list[Passage]()
    for rank, name in enumerate(population):
        candidate, marks = record.candidates[name], " (a parent)" * (name in parents)
        speedup = f"{candidate.trusted.speedup:.3g}x" if candidate.trusted is not None else "not timed"
        text = f"- {named(record, name)}{marks}: {speedup}: {candidate.created.summary}"
        passages.append(Passage(ALIVE, text, (4.0, -rank)))
    for candidate in record.candidates.values():
        if candidate.has_failed:
            is_own = bool({candidate.created.parent_id, candidate.created.second_parent_id} & set(parents))
            worth = (3.0 if is_own else 2.0, record.number(candidate.candidate_id))
            passages.append(Passage(FAILURES, _artifact(record, candidate), worth))
    return Ranked(tuple(passages), int(TOLD_TOKENS * RULE))


def _artifact(record: Record, failed: Candidate) -> str:
    """What a failed kernel changed and what its evaluation reported."""
    created = failed.created
    origin = " and ".join(named(record, name) for name in (created.parent_id, created.second_parent_id) if name)
    ended = FAILED[failed.verdict] if failed.verdict is not None else "failed"
    lead = f"- {named(record, failed.candidate_id)}{f' from {origin}' if origin else ''} {ended}: {created.summary}"
    return f"{lead}\n{shortened(describe_failure(failed), ARTIFACT)}"
