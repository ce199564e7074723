"""Walks of a search on the graph of techniques: the edges that were weighed, and what came of those that were taken."""

from __future__ import annotations

from dataclasses import dataclass

from storage.index.database import Database
from storage.index.queries import fetch
from storage.run.events import DepthFinished


@dataclass(frozen=True, slots=True)
class WeighedRow:
    """An edge as the walk to a kernel weighed it at an earlier one, which is kernel `number`.

    `visits` (N) and `value` (Q) are of the run before the walk, `prior` is a log gain.
    """

    place: int
    number: int
    source: str
    target: str
    visits: int
    value: float
    prior: float
    score: float
    is_taken: bool


@dataclass(frozen=True, slots=True)
class TakenRow:
    """An edge that walks of a run took: how often (N), the sum of what came back (Q), and its prior, a log gain."""

    source: str
    target: str
    visits: int
    value: float
    prior: float


def walk(db: Database, run_id: str, candidate_id: str) -> list[WeighedRow]:
    """What the walk weighed that a kernel is the end of, from the first kernel on; empty in a method without walks."""
    sql = "SELECT candidate_id, number, depth FROM kernels WHERE run_id = ?"
    kernels = {name: (number, depth) for name, number, depth in fetch.tuples(db, sql, [run_id])}
    if candidate_id not in kernels:
        return []
    walks = [entry.event for entry in _weighed(db, run_id) if entry.event.depth == kernels[candidate_id][1]]
    return [
        WeighedRow(
            index, kernels[w.candidate_id][0], w.source, w.target, w.visits, w.value, w.prior, w.score, w.is_taken
        )
        for walk in walks[-1:]
        for index, w in enumerate(walk.weighed)
        if w.candidate_id in kernels
    ]


def taken(db: Database, run_id: str) -> list[TakenRow]:
    """The edges that a run has taken, those with most walks first."""
    edges: dict[tuple[str, str], TakenRow] = {}
    for entry in _weighed(db, run_id):
        for w in entry.event.weighed:
            if w.is_taken:
                row = edges.get((w.source, w.target), TakenRow(w.source, w.target, 0, 0.0, 0.0))
                value = row.value + (entry.event.reward or 0.0)
                edges[w.source, w.target] = TakenRow(w.source, w.target, row.visits + 1, value, w.prior)
    return sorted(edges.values(), key=lambda row: (-row.visits, -row.value, row.source, row.target))


def _weighed(db: Database, run_id: str) -> list[fetch.RunEntry[DepthFinished]]:
    """Ends of step indexes that a walk led to."""
    return fetch.events(db, run_id, DepthFinished, where="contains(json, '\"weighed\":[{')")
