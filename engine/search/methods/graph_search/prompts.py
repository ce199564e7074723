"""What the graph search asks the model: prompt files with their slots filled from a run. Knows no reply."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

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
from storage import codec
from storage.knowledge.graph import NEW_METHOD, START
from storage.knowledge.records import Advised, Transition, WeighedEdge
from storage.run.blobs import BlobError
from storage.run.events import Consulted
from storage.run.record import Candidate

ADVISE = "graph_search/system_advise.md"
MOST_SHOWN, MOST_EXAMPLES = 14, 2
FIRST = "the first kernel, which no technique has led to yet"


@dataclass(frozen=True, slots=True)
class Outline:
    """Lay out a sequence of techniques for a kernel."""

    consulted: Consulted | None

    def __call__(self, context: RunContext, ask: Ask) -> list[Message]:
        """The messages."""
        slots = _kernel(context, ask) | _known(self.consulted)
        rules = rule_section(context.record.steering.rules)
        return open_conversation(context, ask, "graph_search/outline.md", ADVISE, rules=rules, **slots)


@dataclass(frozen=True, slots=True)
class Relabel:
    """Say which techniques of a sequence are known under which name. `steps`: name and what is done."""

    steps: tuple[tuple[str, str], ...]
    known: tuple[str, ...]

    def __call__(self, context: RunContext, ask: Ask) -> list[Message]:
        """The messages."""
        steps = "\n".join(f"{number}. {name}: {done}" for number, (name, done) in enumerate(self.steps, 1))
        techniques = "\n".join(f"- {name}" for name in self.known) or "- none yet"
        hint = hint_section(context.record.pending_hints)
        return open_conversation(
            context, ask, "graph_search/relabel.md", ADVISE, steps=steps, techniques=techniques, hint=hint
        )


@dataclass(frozen=True, slots=True)
class Propose:
    """Name a technique that has no edge at the kernel's node."""

    node: str
    consulted: Consulted | None
    taken: tuple[str, ...]

    def __call__(self, context: RunContext, ask: Ask) -> list[Message]:
        """The messages."""
        record = context.record
        return open_conversation(
            context,
            ask,
            "graph_search/propose.md",
            ADVISE,
            rules=rule_section(record.steering.rules),
            earlier=history(record, context.candidate(ask.about).candidate_id, "expansion"),
            node=_led_by(self.node),
            taken="\n".join(f"- {name}" for name in self.taken) or "- none",
            **_known(self.consulted),
            **_kernel(context, ask),
        )


@dataclass(frozen=True, slots=True)
class Optimise:
    """Apply the technique of an edge. `proposal` is what the model said of a new one, `most` how many examples it is
    shown."""

    node: str
    technique: str
    advised: Advised | None
    proposal: tuple[tuple[str, object], ...]
    edge: WeighedEdge | None
    consulted: Consulted | None
    most: int

    def __call__(self, context: RunContext, ask: Ask) -> list[Message]:
        """The messages."""
        record, name = context.record, context.candidate(ask.about).candidate_id
        return open_conversation(
            context,
            ask,
            "graph_search/optimise.md",
            guide=guide(context),
            patch_format=prompting.text("patch_format.md").strip(),
            rules=rule_section(record.steering.rules),
            earlier=history(record, name, "expansion"),
            technique=self._technique(),
            node=_led_by(self.node),
            examples=_examples(context, self.consulted, self.technique, self.most),
            state=_state(self.consulted),
            **_kernel(context, ask),
        )

    def _technique(self) -> str:
        proposal = dict(self.proposal)
        words = [proposal.get(key) for key in ("about", "think", "helps", "hurts")] if proposal else []
        if self.advised is not None and not words:
            words = [self.advised.about, self.advised.helps, self.advised.hurts]
        text = " ".join(f"{str(word).strip().rstrip('.')}." for word in words if word)
        lines = [f"{self.technique or NEW_METHOD}: {text}".rstrip(": ").strip()]
        if self.edge is not None and self.edge.visits:
            mean = self.edge.value / self.edge.visits
            lines.append(f"In this run that step was taken {self.edge.visits} times, with a mean value of {mean:+.2f}.")
        return "\n".join(lines)


def repair(context: RunContext, ask: Ask) -> list[Message]:
    """Find what is wrong with a kernel and mend it."""
    candidate, record = context.candidate(ask.about), context.record
    return open_conversation(
        context,
        ask,
        "graph_search/repair.md",
        task=reference(context),
        guide=debugging(context),
        patch_format=prompting.text("patch_format.md").strip(),
        rules=rule_section(record.steering.rules),
        change=changes(context, candidate),
        failure=describe_failure(candidate),
        listing=numbered(context.source(candidate)),
        hint=hint_section(record.pending_hints),
    )


def _led_by(node: str) -> str:
    return FIRST if node == START else f"a kernel that `{node}` has led to"


def _state(consulted: Consulted | None) -> str:
    if consulted is None or not consulted.state:
        return ""
    return f"State of this kernel by its profile: {consulted.state.replace('_', ' ')}. {consulted.why}".strip()


def _known(consulted: Consulted | None) -> dict[str, str]:
    """What the base answered: the kernel's state, techniques with their attempts, others by name."""
    advised = consulted.found if consulted else ()
    negative = [advice for advice in advised if advice.is_negative]
    listed = [*negative[:3], *(advice for advice in advised if not advice.is_negative)][:MOST_SHOWN]
    others = consulted.others if consulted else ()
    return {
        "state": _state(consulted),
        "techniques": "\n".join(f"- {_counted(advice)}" for advice in listed)
        or "- nothing is known for this state yet",
        "others": f"Known elsewhere, by name: {', '.join(others)}." if others else "",
    }


def _counted(advice: Advised) -> str:
    seen = f"{advice.faster} of {advice.attempts} attempts faster" if advice.attempts else "not tried yet"
    wrong = f", {advice.slower + advice.failed} slower or failed" if advice.is_negative else ""
    return f"{advice.technique} (expected {advice.expected_gain:.3g}x; {seen}{wrong}): {advice.about}".rstrip(": ")


def _examples(context: RunContext, consulted: Consulted | None, target: str, most: int) -> str:
    """Examples of the edge, from runs and from models; empty where there are none."""
    if consulted is None or not consulted.examples_blob or most < 1:
        return ""
    try:
        plain = json.loads(context.blobs.get(consulted.examples_blob)).get(target, [])
    except BlobError:
        return ""
    transitions: Sequence[Transition] = [codec.from_plain(Transition, entry) for entry in plain]
    if not transitions:
        return ""
    examples = "\n\n".join(map(_example, transitions[: min(most, MOST_EXAMPLES)]))
    return prompting.fill("graph_search/examples.md", examples=examples).strip()


def _example(transition: Transition) -> str:
    lines = [f"{transition.method or transition.target}. {transition.think}".strip()]
    for title, code in (("Before:", transition.before), ("After:", transition.after)):
        lines += [title, "```", code, "```"] if code else []
    return "\n".join(lines)


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
