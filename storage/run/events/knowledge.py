"""What a run asks of the knowledge base, and what it teaches it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from storage.knowledge.records import Advised, Bottleneck, KnownEdge, State, ToldRule


@dataclass(frozen=True, slots=True)
class Consulted:
    """What the knowledge base answered about a kernel. Strategies read only this, never the base."""

    step: int
    depth: int
    candidate_id: str
    state: str
    """Of the kernel; empty, with no `bottleneck`, where nothing is known of it."""
    bottleneck: Bottleneck | None
    state_confidence: float
    """How sure the state is, from 0 to 1."""
    found: tuple[Advised, ...]
    """Techniques, beginning with what promises most."""
    mark: str
    """Names exactly what the base had read."""
    secondary: tuple[str, ...] = ()
    """Further states that the kernel is in."""
    why: str = ""
    """Why this state, or why none is known."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """What decided it."""
    states: tuple[State, ...] = ()
    """Those that the base knows, told where the rules leave the kernel's state open."""
    others: tuple[str, ...] = ()
    """Techniques of other states, by name."""
    edges: tuple[KnownEdge, ...] = ()
    """They lead on from the technique that made the kernel, told where the method walks the graph of techniques."""
    examples_blob: str = ""
    """Examples of `edges`, by target, as JSON."""


@dataclass(frozen=True, slots=True)
class RulesTold:
    """Failure rules that the writers of kernels are told from this step on, in the order of the prompt, until others
    are told; none where no rule holds any more. `mark` names exactly what the knowledge base had read."""

    step: int
    depth: int
    rules: tuple[ToldRule, ...]
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Taught:
    """The run has changed what is known by name. `revision_blob` is the whole revision as JSON."""

    step: int
    depth: int
    revision_id: str
    summary: str
    revision_blob: str
