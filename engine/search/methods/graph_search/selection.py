"""Which edge a walk takes at a node, and what comes back along the edges that it took. Pure arithmetic.

Method: upper confidence bounds on edges, Q/N + c·√(ln N_parent / (1 + N)). N and Q belong to edges, not to nodes, and
only the edges of the walk are updated: a node that several walks reach by different ways has one set of edges, and a
value that came by one way says nothing of the others. An edge that was never taken has its prior in the place of Q/N.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from storage.knowledge.graph import FAILED_VALUE, NEW_METHOD, Ends
from storage.knowledge.records import WeighedEdge


@dataclass(frozen=True, slots=True)
class Visits:
    """How often an edge was taken, and the sum of what came back along it."""

    count: int = 0
    value: float = 0.0


@dataclass(slots=True)
class Statistics:
    """N and Q of each edge in one run, and how many walks went on from each node."""

    edges: dict[Ends, Visits] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)

    def back_up(self, walk: Sequence[Ends], value: float, technique: str = "") -> None:
        """A walk is over; `value` counts for each of its edges. `technique` is what its last edge turned out to
        be, where that was the edge of a new method: the edge to that technique then counts as taken, too."""
        for edge in walk:
            self._add(edge, value)
            self.nodes[edge[0]] = self.nodes.get(edge[0], 0) + 1
        if technique and walk and walk[-1][1] == NEW_METHOD:
            self._add((walk[-1][0], technique), value)

    def _add(self, edge: Ends, value: float) -> None:
        old = self.edges.get(edge, Visits())
        self.edges[edge] = Visits(old.count + 1, old.value + value)


def score(seen: Visits, prior: float, parent_count: int, c: float) -> float:
    """The upper confidence bound of an edge; `prior` is a log gain."""
    mean = seen.value / seen.count if seen.count else prior
    return mean + c * math.sqrt(math.log(max(parent_count, 1)) / (1 + seen.count))


def weigh(kernel: str, node: str, priors: Mapping[str, float], statistics: Statistics, c: float) -> list[WeighedEdge]:
    """The edges from a node to these targets, the best first; `priors` are log gains by target."""
    edges = []
    for target, prior in priors.items():
        seen = statistics.edges.get((node, target), Visits())
        bound = score(seen, prior, statistics.nodes.get(node, 0), c)
        edges.append(WeighedEdge(kernel, node, target, seen.count, seen.value, prior, bound))
    return sorted(edges, key=lambda edge: (-edge.score, edge.target))


def choose(weighed: Sequence[WeighedEdge], seed: str) -> WeighedEdge:
    """The best of them; among equals one is drawn, the same one for the same seed."""
    best = [edge for edge in weighed if edge.score == weighed[0].score]
    return random.Random(seed).choice(best)


def value_of(factor: float | None) -> float:
    """What a walk brings: the logarithm of its kernel's speed-up over the one where it began; a failure is -1."""
    return FAILED_VALUE if factor is None else math.log(factor)


def kept(weighed: Iterable[WeighedEdge], most: int, taken: str) -> list[WeighedEdge]:
    """The best few and the one that was taken, which is marked."""
    edges = [edge for rank, edge in enumerate(weighed) if rank < most or edge.target == taken]
    return [
        WeighedEdge(
            edge.candidate_id, edge.source, edge.target, edge.visits, round(edge.value, 6), round(edge.prior, 6),
            round(edge.score, 6), edge.target == taken,
        )
        for edge in edges
    ]  # fmt: skip
