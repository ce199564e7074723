"""What a run asks of the knowledge base, and what it teaches it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from storage.knowledge.records import Advised, Bottleneck, KnownEdge, State, ToldRule


@dataclass(frozen=True, slots=True)
class Consulted:
    """What the knowledge base answered about a kernel. Strategies read only this, never the base.

    `state` is empty, and `bottleneck` None, where nothing is known of the kernel's state; `why` says so. `metrics`
    decided it. `found` begins with what promises most. `mark` names exactly what the base had read. `states` are those
    that the base knows, told where the rules leave the kernel's state open; `others` are techniques of other states, by
    name. `edges` lead on from the technique that made the kernel, told where the method walks the graph of techniques;
    the blob holds examples of them, by target, as JSON.
    """

    step: int
    depth: int
    candidate_id: str
    state: str
    bottleneck: Bottleneck | None
    state_confidence: float
    found: tuple[Advised, ...]
    mark: str
    secondary: tuple[str, ...] = ()
    why: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    states: tuple[State, ...] = ()
    others: tuple[str, ...] = ()
    edges: tuple[KnownEdge, ...] = ()
    examples_blob: str = ""


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
