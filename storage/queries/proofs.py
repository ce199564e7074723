"""The checks that stand behind a candidate's verdict and speed-up, and how many of them need a person's eyes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from storage.database import Database
from storage.proof import Group, Standing
from storage.queries import fetch


@dataclass(frozen=True, slots=True)
class ProofRow:
    """One check of one candidate. `stages` are those it was made in (write, compile, check, time).

    `value` is what was measured and `allowed` what it must not exceed; None where the check compares no numbers.
    """

    group: Group
    check: str
    standing: Standing
    detail: str
    value: float | None
    allowed: float | None
    stages: Sequence[str]


@dataclass(frozen=True, slots=True)
class _OfCandidate(ProofRow):
    candidate_id: str


@dataclass(frozen=True, slots=True)
class StandingCount:
    """How many checks of one candidate a person should look at, and how many led to a refusal."""

    candidate_id: str
    flagged: int
    broken: int


def proofs(db: Database, run_id: str, candidate_id: str) -> list[ProofRow]:
    """One row per check, by group, the worst first. A check made in several stages shows where it stood worst."""
    sql = """SELECT check_group AS "group", check_name AS "check", standing, detail, value, allowed, [stage] AS stages
        FROM standings WHERE run_id = ? AND candidate_id = ? ORDER BY seq, number, detail"""
    found = worst_of_each(fetch.rows(db, ProofRow, sql, [run_id, candidate_id]))
    groups = list(Group)
    return sorted(found, key=lambda row: (groups.index(row.group), -row.standing.severity))


def worst_of_each(rows: Iterable[ProofRow]) -> list[ProofRow]:
    """Rows of the same check from different stages as one, in the order of their first; several of one stage stay."""
    by_check: dict[tuple[Group, str], list[ProofRow]] = {}
    for row in rows:
        by_check.setdefault((row.group, row.check), []).append(row)
    return [row for same in by_check.values() for row in _worst_stage(same)]


def _worst_stage(same: Sequence[ProofRow]) -> list[ProofRow]:
    stages = list(dict.fromkeys(stage for row in same for stage in row.stages))
    worst = max(reversed(same), key=lambda row: row.standing.severity)
    return [replace(row, stages=stages) for row in same if row.stages == worst.stages]


def standing_counts(db: Database, run_id: str) -> dict[str, StandingCount]:
    """By candidate; those with nothing to look at are left out."""
    sql = """SELECT candidate_id, check_group AS "group", check_name AS "check", standing, detail, value, allowed,
        [stage] AS stages FROM standings WHERE run_id = ? AND standing IN ('flagged', 'broken')
        ORDER BY candidate_id, seq, number, detail"""
    found = fetch.rows(db, _OfCandidate, sql, [run_id])
    return {name: _counted(name, rows) for name, rows in groupby(found, key=lambda row: row.candidate_id)}


def _counted(candidate_id: str, rows: Iterable[ProofRow]) -> StandingCount:
    standings = [row.standing for row in worst_of_each(rows)]
    return StandingCount(candidate_id, standings.count(Standing.FLAGGED), standings.count(Standing.BROKEN))
