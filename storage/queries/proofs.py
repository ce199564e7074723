"""The checks that stand behind a candidate's verdict and speed-up, and how many of them need a person's eyes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from storage.database import Database
from storage.proof import Group, StagedProof, Standing, standing
from storage.queries import fetch


@dataclass(frozen=True, slots=True)
class StandingCount:
    """How many checks of one candidate a person should look at, and how many led to a refusal."""

    candidate_id: str
    flagged: int
    broken: int


@dataclass(frozen=True, slots=True)
class _Row:
    candidate_id: str
    stage: str
    group: Group
    check: str
    standing: Standing
    detail: str
    value: float | None
    limit: float | None

    def proof(self) -> StagedProof:
        return StagedProof(
            self.group, self.check, self.standing, self.detail, self.value, self.limit, stages=(self.stage,)
        )


_ROWS = """
SELECT candidate_id, stage, check_group AS "group", check_name AS "check", standing, detail, value, allowed AS "limit"
FROM standings WHERE run_id = ? AND {which} ORDER BY candidate_id, seq, number, detail
"""


def proofs(db: Database, run_id: str, candidate_id: str) -> list[StagedProof]:
    """One per check, by group, the worst first. A check made in several stages shows where it stood worst."""
    found = fetch.rows(db, _Row, _ROWS.format(which="candidate_id = ?"), [run_id, candidate_id])
    return standing(row.proof() for row in found)


def standing_counts(db: Database, run_id: str, candidate_ids: Sequence[str] | None = None) -> dict[str, StandingCount]:
    """By candidate, of all or of those named; those with nothing to look at are left out."""
    which, parameters = "standing IN ('flagged', 'broken')", [run_id]
    if candidate_ids is not None:
        which += f" AND candidate_id IN ({', '.join('?' * len(candidate_ids)) or 'NULL'})"
        parameters += candidate_ids
    found = fetch.rows(db, _Row, _ROWS.format(which=which), parameters)
    return {name: _counted(name, rows) for name, rows in groupby(found, key=lambda row: row.candidate_id)}


def _counted(candidate_id: str, rows: Iterable[_Row]) -> StandingCount:
    found = [proof.standing for proof in standing(row.proof() for row in rows)]
    return StandingCount(candidate_id, found.count(Standing.FLAGGED), found.count(Standing.BROKEN))
