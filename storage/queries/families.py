"""The family tree of a run's kernels, as much of it as a strip has room for."""

from __future__ import annotations

from dataclasses import dataclass

from storage.database import Database
from storage.queries import fetch
from storage.queries.attempts import LineageRow

NEWEST = 200


@dataclass(frozen=True, slots=True)
class FamilyRow(LineageRow):
    """One node; `summary` says what changed."""

    summary: str


@dataclass(frozen=True, slots=True)
class RollBackRow:
    """A person sent the run back: kernels from number `from_number` on were made after it."""

    from_number: int
    candidate_id: str


def family(db: Database, run_id: str, newest: int = NEWEST) -> list[FamilyRow]:
    """The newest kernels and, where it is older, the best one before them; parents before children."""
    sql = """SELECT candidate_id, number, parent_id, base_id, depth, generation, repair, origin, verdict, speedup,
        is_accepted, is_pending, is_best, is_tied, summary FROM attempts WHERE run_id = $run
        QUALIFY row_number() OVER (ORDER BY seq DESC) <= $newest OR is_best ORDER BY seq"""
    return fetch.rows(db, FamilyRow, sql, {"run": run_id, "newest": newest})


def roll_backs(db: Database, run_id: str) -> list[RollBackRow]:
    """Roll-backs in force, by the first kernel made after each; those that no kernel has followed yet are left out."""
    sql = """
    WITH n AS (SELECT seq, number FROM numbered WHERE run_id = $run)
    SELECT (SELECT min(number) FROM n WHERE n.seq > s.effective_seq) AS from_number, s.argument AS candidate_id
    FROM steering s WHERE s.run_id = $run AND s.kind = 'roll_back' AND s.effective_seq IS NOT NULL
        AND from_number IS NOT NULL ORDER BY s.effective_seq"""
    return fetch.rows(db, RollBackRow, sql, {"run": run_id})
