"""What the knowledge base answers of the graph of techniques: the edges that lead on from one, with examples of them.
Reads the sources of earlier runs where these are still there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.knowledge.consulting import Need
from storage.differences import Comparison
from storage.knowledge.base import Base
from storage.knowledge.figures import NOTHING_KNOWN, figures_of, log_units, tally
from storage.knowledge.graph import attempts_by_edge, examples_by_edge, value
from storage.knowledge.records import Advised, Evidence, KnownEdge, Outcome, Transition
from storage.run.blobs import BlobError, Blobs
from storage.run.folder import RunFolder

MOST_EDGES = 24
MOST_EXAMPLES = 2  # of an edge
EXAMPLE_LINES, EXAMPLE_LETTERS = 24, 1200  # of either side
GAP = "…"


def edges_from(base: Base, node: str, advised: Sequence[Advised], need: Need) -> tuple[KnownEdge, ...]:
    """The edges from a technique to those that apply, the most tried first; `advised` is what the base expects of
    techniques in the kernel's state, which weighs as much as two attempts on an edge."""
    tried, laid = attempts_by_edge(base.attempts, base.rows), examples_by_edge(base.known.transitions)
    expected = {advice.technique: (log_units(advice.expected_gain), advice.confidence) for advice in advised}
    targets = {target for source, target in (*tried, *laid) if source == node}
    edges = []
    for target in sorted(target for target in targets if _applies(base, target, need)):
        seen = tally(tried.get((node, target), ()))
        gain = figures_of(seen, *expected.get(target, NOTHING_KNOWN)).expected_gain
        edges.append(KnownEdge(node, target, gain, seen.attempts, value(seen)))
    return tuple(sorted(edges, key=lambda edge: (-edge.attempts, -edge.expected_gain, edge.target))[:MOST_EDGES])


def _applies(base: Base, target: str, need: Need) -> bool:
    technique = base.techniques.get(target)
    return technique is None or (not technique.is_disabled and need.allows(technique))


def examples(base: Base, edges: Sequence[KnownEdge], runs: Path) -> dict[str, tuple[Transition, ...]]:
    """Examples of each edge by its target: the attempts that gained most, then what models have laid out. `runs` is the
    folder of run folders."""
    tried, laid = attempts_by_edge(base.attempts, base.rows), examples_by_edge(base.known.transitions)
    by_target: dict[str, tuple[Transition, ...]] = {}
    for edge in edges:
        ends = edge.source, edge.target
        faster = [row for row in tried.get(ends, ()) if row.outcome is Outcome.FASTER and row.gain]
        faster.sort(key=lambda row: -(row.gain or 0.0))
        shown = [*_of_attempts(edge, faster[:MOST_EXAMPLES], runs), *laid.get(ends, ())]
        if shown:
            by_target[edge.target] = tuple(shown[:MOST_EXAMPLES])
    return by_target


def _of_attempts(edge: KnownEdge, rows: Sequence[Evidence], runs: Path) -> Iterator[Transition]:
    for row in rows:
        blobs = Blobs(RunFolder(runs / row.run_id).blobs)
        try:
            before, after = changed(blobs.get(row.parent_hash), blobs.get(row.child_hash))
        except BlobError:
            continue  # an imported attempt, or a run that somebody has deleted
        state = f" of a kernel in the state {row.state.replace('_', ' ')}" if row.state else ""
        think = f"Measured on {row.task or 'another task'}{state}: {row.gain:.3g}x over the kernel before."
        yield Transition(edge.source, edge.target, think, edge.target, before, after)


def changed(old: str, new: str) -> tuple[str, str]:
    """The lines in which two sources differ, as they were and as they are, neither longer than a prompt can show."""
    lines, others = old.splitlines(), new.splitlines()
    before, after = list[str](), list[str]()
    for kind, i, j, k, m in Comparison(lines, others).get_opcodes():
        if kind != "equal":
            before += [*([GAP] if before else []), *lines[i:j]]
            after += [*([GAP] if after else []), *others[k:m]]
    return shortened(before), shortened(after)


def shortened(lines: Sequence[str]) -> str:
    """At most so many lines and letters of a text."""
    text = "\n".join(lines[:EXAMPLE_LINES])
    kept = text if len(text) <= EXAMPLE_LETTERS else text[:EXAMPLE_LETTERS].rsplit("\n", 1)[0]
    return kept if len(lines) <= EXAMPLE_LINES and kept == text else f"{kept}\n{GAP}"
