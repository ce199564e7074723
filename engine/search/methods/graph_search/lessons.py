"""What a graph search teaches the knowledge base, as revisions: a sequence of techniques that a model laid out, and a
new method. Pure: names, times and authors are filled in by the loop."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from storage.knowledge.graph import START
from storage.knowledge.records import Category, Prior, Revision, Technique, Transition

PROPOSED_CONFIDENCE = 0.5  # that of a technique which was only just proposed


def transitions_of(steps: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> tuple[Transition, ...]:
    """The edges of a sequence, from the first kernel on, each with its example."""
    return tuple(
        Transition(source, target, step["think"], step["method"], step["before"], step["after"])
        for source, target, step in zip([START, *labels], labels, steps, strict=False)
    )


def of_outline(steps: Sequence[Mapping[str, Any]], labels: Sequence[str], known: Collection[str]) -> Revision:
    """The edges of an outline, and the techniques among them that nobody has defined."""
    new = {
        name: Technique(name, Category(step["category"]), step["method"], f"As a model argued: {step['think']}")
        for name, step in zip(labels, steps, strict=True)
        if name not in known
    }
    why = f"a model laid out {' → '.join(labels)}"
    return Revision("new", 0.0, "a run", why, techniques=tuple(new.values()), transitions=transitions_of(steps, labels))


def of_proposal(proposal: Mapping[str, Any], node: str, state: str) -> Revision:
    """A new method at a node: the edge, and what is expected of the technique in the kernel's state."""
    name = proposal["technique"]
    words = proposal["about"], proposal["helps"], proposal["hurts"]
    techniques = () if proposal["is_known"] else (Technique(name, Category(proposal["category"]), *words),)
    priors = (
        ()
        if proposal["is_known"] or not state
        else (Prior(state, name, proposal["predicted_gain"], PROPOSED_CONFIDENCE),)
    )
    edge = Transition(node, name, proposal["think"], proposal["about"])
    why = f"a model proposed {name} after {node}: {proposal['think']}"
    return Revision("new", 0.0, "a run", why, techniques=techniques, priors=priors, transitions=(edge,))
