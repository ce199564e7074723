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
        Transition(source, target, one["think"], one["method"], one["before"], one["after"])
        for source, target, one in zip([START, *labels], labels, steps, strict=False)
    )


def of_outline(steps: Sequence[Mapping[str, Any]], labels: Sequence[str], known: Collection[str]) -> Revision:
    """Its edges, and the techniques among them that nobody has defined."""
    made = {
        name: Technique(name, Category(one["category"]), one["method"], f"As a model argued: {one['think']}")
        for name, one in zip(labels, steps, strict=True)
        if name not in known
    }
    why = f"a model laid out {' → '.join(labels)}"
    return Revision(
        "new", 0.0, "a run", why, techniques=tuple(made.values()), transitions=transitions_of(steps, labels)
    )


def of_proposal(said: Mapping[str, Any], node: str, state: str) -> Revision:
    """A new method at a node: the edge, and what is expected of the technique in the kernel's state."""
    name = said["technique"]
    words = said["about"], said["helps"], said["hurts"]
    techniques = () if said["is_known"] else (Technique(name, Category(said["category"]), *words),)
    priors = () if said["is_known"] or not state else (Prior(state, name, said["predicted_gain"], PROPOSED_CONFIDENCE),)
    edge = Transition(node, name, said["think"], said["about"])
    why = f"a model proposed {name} after {node}: {said['think']}"
    return Revision("new", 0.0, "a run", why, techniques=techniques, priors=priors, transitions=(edge,))
