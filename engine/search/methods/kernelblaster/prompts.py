"""What KernelBlaster asks the model: prompt files with their slots filled from the run. Knows prompts, not replies.

A writer that needs more than the run's record, such as the technique that was drawn, is made with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.knowledge.states import STATES
from engine.search import prompting
from engine.search.actions import Ask
from engine.search.context import RunContext
from engine.search.llm import Message
from engine.search.patching.edits import numbered
from engine.search.steps import briefing
from engine.search.steps.conversation import hint_section, open_conversation, reference, rule_section, timing_line
from engine.search.steps.evaluate import describe_failure
from engine.search.steps.guidance import debugging, guide
from engine.search.steps.history import changes, history
from storage.knowledge.records import Advised
from storage.run.events import Consulted
from storage.run.record import Candidate

ADVISE, VERIFY = "kernelblaster/system_advise.md", "kernelblaster/system_verify.md"
OWN_CHOICE = "kernelblaster/own_choice.md"
MOST_SHOWN, MOST_NEGATIVE = 14, 4
NONE_KNOWN = "- nothing is known for this state yet; propose techniques of your own"


def shown(advised: Sequence[Advised]) -> list[Advised]:
    """The techniques that a prompt lists: those that went wrong more often than not first, then by predicted gain."""
    negative = [advice for advice in advised if advice.is_negative][:MOST_NEGATIVE]
    return [*negative, *(advice for advice in advised if not advice.is_negative)][:MOST_SHOWN]


def listed(advised: Sequence[Advised]) -> str:
    """Techniques as a list."""
    return "\n".join(f"- {technique(advice)}" for advice in shown(advised)) or NONE_KNOWN


def technique(advice: Advised) -> str:
    """What is known of a technique, with the attempts that it rests on."""
    words = (("", advice.joined), ("", advice.about), ("Helps: ", advice.helps), ("Hurts: ", advice.hurts))
    passage = " ".join(f"{lead}{text.strip().rstrip('.')}." for lead, text in words if text.strip())
    same = advice.attempts - advice.faster - advice.slower - advice.failed
    counts = (
        f"{advice.attempts} attempts: {advice.faster} faster, {same} alike, {advice.slower} slower, "
        f"{advice.failed} failed"
        if advice.attempts
        else "not tried in this state yet"
    )
    inherited = f", taken over from {advice.inherited_from}" if advice.inherited_from else ""
    expected = f"Expected {advice.expected_gain:.3g}x, confidence {advice.confidence:.2g}{inherited}; {counts}."
    return f"{advice.technique} ({advice.category}): {passage} {expected}"


def state_of(consulted: Consulted) -> str:
    """What the base was told of a kernel's state, in a line."""
    if not consulted.state:
        return f"State of this kernel: not known. {consulted.why}".rstrip()
    kind = f"{consulted.bottleneck}, " if consulted.bottleneck else ""
    signs = f"; also {', '.join(consulted.secondary)}" if consulted.secondary else ""
    why = f" {consulted.why}" if consulted.why else ""
    return f"State of this kernel: {consulted.state} ({kind}confidence {consulted.state_confidence:.2g}{signs}).{why}"


@dataclass(frozen=True, slots=True)
class Classify:
    """Name the state of a kernel where the rules leave it open."""

    consulted: Consulted

    def __call__(self, context: RunContext, ask: Ask) -> list[Message]:
        """The messages."""
        lines = [f"- {state.name} ({state.bottleneck}): {state.about}" for state in self.consulted.states]
        states = "\n".join(lines or [f"- {name} ({bottleneck})" for name, bottleneck in STATES.items()])
        slots = _kernel(context, ask) | {"states": states, "state": state_of(self.consulted)}
        return open_conversation(context, ask, "kernelblaster/classify.md", ADVISE, **slots)


@dataclass(frozen=True, slots=True)
class Plan:
    """Rate the techniques that are known for the kernel's state, and add what the list lacks."""

    consulted: Consulted

    def __call__(self, context: RunContext, ask: Ask) -> list[Message]:
        """The messages."""
        record, name = context.record, context.candidate(ask.about).candidate_id
        others = self.consulted.others
        return open_conversation(
            context,
            ask,
            "kernelblaster/plan.md",
            ADVISE,
            rules=rule_section(record.steering.rules),
            earlier=history(record, name, "step"),
            state=state_of(self.consulted),
            techniques=listed(self.consulted.found),
            others=f"Known from other states, by name (one of these belongs into new): {', '.join(others)}."
            if others
            else "",
            **_kernel(context, ask),
        )


@dataclass(frozen=True, slots=True)
class Optimise:
    """Apply the technique that was drawn, or one of the model's choice."""

    advised: Advised | None
    consulted: Consulted | None

    def __call__(self, context: RunContext, ask: Ask) -> list[Message]:
        """The messages."""
        record, name = context.record, context.candidate(ask.about).candidate_id
        return open_conversation(
            context,
            ask,
            "kernelblaster/optimise.md",
            guide=guide(context),
            patch_format=prompting.text("patch_format.md").strip(),
            rules=rule_section(record.steering.rules),
            earlier=history(record, name, "step"),
            technique=technique(self.advised) if self.advised else prompting.text(OWN_CHOICE).strip(),
            state=state_of(self.consulted) if self.consulted else "",
            **_kernel(context, ask),
        )


def repair(context: RunContext, ask: Ask) -> list[Message]:
    """Find what is wrong with a kernel and mend it."""
    candidate, record = context.candidate(ask.about), context.record
    return open_conversation(
        context,
        ask,
        "kernelblaster/repair.md",
        task=reference(context),
        guide=debugging(context),
        patch_format=prompting.text("patch_format.md").strip(),
        rules=rule_section(record.steering.rules),
        change=changes(context, candidate),
        failure=describe_failure(candidate),
        listing=numbered(context.source(candidate)),
        hint=hint_section(record.pending_hints),
    )


def judge(context: RunContext, ask: Ask) -> list[Message]:
    """Compare the structure of a correct kernel with the reference's."""
    candidate = context.candidate(ask.about)
    return open_conversation(
        context,
        ask,
        "kernelblaster/judge.md",
        VERIFY,
        task=reference(context),
        listing=numbered(context.source(candidate)),
        hint=hint_section(context.record.pending_hints),
    )


@dataclass(frozen=True, slots=True)
class Analyse:
    """Say which assumption of a round was wrong. `evaluation`: predicted against measured, in lines."""

    evaluation: str

    def __call__(self, context: RunContext, ask: Ask) -> list[Message]:
        """The messages."""
        slots = _kernel(context, ask)
        slots.pop("profile")
        earlier = history(context.record, context.candidate(ask.about).candidate_id, "step")
        slots["evaluation"] = self.evaluation
        return open_conversation(context, ask, "kernelblaster/analyse.md", ADVISE, earlier=earlier, **slots)


@dataclass(frozen=True, slots=True)
class Revise:
    """Correct what the knowledge base expects. `expected` is what it last said, by state."""

    evaluation: str
    expected: str

    def __call__(self, context: RunContext, ask: Ask) -> list[Message]:
        """The messages."""
        return open_conversation(
            context,
            ask,
            "kernelblaster/revise.md",
            ADVISE,
            evaluation=self.evaluation,
            techniques=self.expected,
            analysis=_analysis(context),
            hint=hint_section(context.record.pending_hints),
        )


def _analysis(context: RunContext) -> str:
    """The last analysis of differences, a line for each field."""
    reviews = [review for review in context.record.reviews.values() if review.label == "analyse" and not review.problem]
    return context.blobs.get(reviews[-1].text_blob).strip() if reviews else "(there is none)"


def _kernel(context: RunContext, ask: Ask) -> dict[str, str]:
    """What every question about a correct kernel shows of it."""
    candidate = context.candidate(ask.about)
    return {
        "task": reference(context),
        "listing": numbered(context.source(candidate)),
        "timing": timing_line(candidate),
        "headroom": briefing.headroom(context.record, candidate),
        "profile": _profile(candidate, is_shown=ask.shows_profile),
        "hint": hint_section(context.record.pending_hints),
    }


def _profile(candidate: Candidate, *, is_shown: bool) -> str:
    summary = candidate.profiled.summary.strip() if candidate.profiled and is_shown else ""
    return prompting.fill("profile.md", summary=summary) if summary else ""
