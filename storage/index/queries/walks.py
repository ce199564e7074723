"""Walks of a search on the graph of techniques: the edges that were weighed, and what came of those that were taken."""

from __future__ import annotations

from dataclasses import dataclass

from storage.index.database import Database
from storage.index.queries import fetch


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
    sql = """
SELECT w.place, n.number, w.source, w.target, w.visits, w.value, w.prior, w.score, w.is_taken
FROM weighed w JOIN candidates c ON c.run_id = w.run_id AND c.depth = w.depth AND c.candidate_id = $candidate
JOIN numbered n ON n.run_id = w.run_id AND n.candidate_id = w.candidate_id WHERE w.run_id = $run ORDER BY w.place
"""
    return fetch.rows(db, WeighedRow, sql, {"run": run_id, "candidate": candidate_id})


def taken(db: Database, run_id: str) -> list[TakenRow]:
    """The edges that a run has taken, those with most walks first."""
    sql = """
SELECT w.source, w.target, count(*) AS visits, sum(d.reward) AS value, arg_max(w.prior, w.seq) AS prior
FROM weighed w JOIN depths d ON d.run_id = w.run_id AND d.seq = w.seq
WHERE w.run_id = $run AND w.is_taken GROUP BY ALL ORDER BY visits DESC, value DESC, w.source, w.target
"""
    return fetch.rows(db, TakenRow, sql, {"run": run_id})
