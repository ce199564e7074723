"""The graph of techniques: which one followed which, from the attempts of all runs and from what models have laid out.
Pure.

Method: ReGraph (arXiv 2510.19873): techniques as nodes, transitions as edges, cycles allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from storage.knowledge.figures import UNIT, Tally
from storage.knowledge.records import Evidence, Transition

START = "start"  # the node of a kernel that no technique has led to
NEW_METHOD = "a new method"  # the edge that is at every node
FAILED_VALUE = -1.0  # where a timed attempt has the logarithm of its gain

Ends = tuple[str, str]


def attempts_by_edge(attempts: Iterable[Evidence], rows: Iterable[Evidence]) -> dict[Ends, list[Evidence]]:
    """Attempts by the technique of the kernel that they changed and by their own.

    A kernel's technique is that of the first timed row of its run which came to that source.
    """
    techniques: dict[Ends, str] = {}
    for row in rows:
        if row.child_hash and row.gain is not None and row.outcome.is_timed:
            techniques.setdefault((row.run_id, row.child_hash), row.technique)
    edges: dict[Ends, list[Evidence]] = {}
    for attempt in attempts:
        source = techniques.get((attempt.run_id, attempt.parent_hash), START)
        edges.setdefault((source, attempt.technique), []).append(attempt)
    return edges


def examples_by_edge(transitions: Iterable[Transition]) -> dict[Ends, list[Transition]]:
    """What models have laid out, by edge; edges that only they know are among them."""
    edges: dict[Ends, list[Transition]] = {}
    for transition in transitions:
        edges.setdefault((transition.source, transition.target), []).append(transition)
    return edges


def value(seen: Tally) -> float:
    """Q of an edge over all runs: the sum of its attempts' log gains, a failed one as -1."""
    failed = seen.incorrect + seen.not_compiled + seen.patch_failed
    return seen.gain_units / UNIT + FAILED_VALUE * failed


def named_as(names: Iterable[str]) -> Mapping[str, str]:
    """Names by how they read: letters' case and spaces do not tell techniques apart."""
    return {" ".join(name.lower().split()): name for name in names}
