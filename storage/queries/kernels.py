"""A run's kernels page by page, as far as a filter lets them through; and the neighbours of one."""

from __future__ import annotations

from dataclasses import dataclass

from storage.database import Database
from storage.queries import fetch
from storage.queries.attempts import AttemptRow
from storage.records import Verdict


@dataclass(frozen=True, slots=True)
class KernelRow(AttemptRow):
    """One kernel with the number of its parent, None for one written from nothing."""

    parent_number: int | None


@dataclass(frozen=True, slots=True)
class KernelFilter:
    """Which kernels: of one verdict (None: any), and with these words in summary, message or id (any case).

    A text that is a number finds the kernel of that number alone.
    """

    verdict: Verdict | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class NeighbourRow:
    """A kernel's place among all of its run, and those made before and after it."""

    number: int
    previous_id: str | None
    next_id: str | None


_CHOSEN = """
WITH chosen AS (SELECT * FROM attempts WHERE run_id = $run AND ($verdict::VARCHAR IS NULL OR verdict = $verdict)
    AND ($text = '' OR number = TRY_CAST($text AS BIGINT) OR TRY_CAST($text AS BIGINT) IS NULL AND contains(
        lower(concat_ws(' ', summary, message, candidate_id, replace(origin, '_', ' '))), lower($text))))
"""


def kernels(db: Database, run_id: str, wanted: KernelFilter, limit: int, offset: int = 0) -> list[KernelRow]:
    """One page, newest first."""
    sql = f"""{_CHOSEN}
    SELECT c.*, p.number AS parent_number FROM (SELECT * FROM chosen ORDER BY seq DESC LIMIT $limit OFFSET $offset) c
    LEFT JOIN (SELECT candidate_id, number FROM numbered WHERE run_id = $run) p
        ON p.candidate_id = c.parent_id
    ORDER BY c.seq DESC"""
    return fetch.rows(db, KernelRow, sql, _parameters(run_id, wanted) | {"limit": limit, "offset": offset})


def count_kernels(db: Database, run_id: str, wanted: KernelFilter) -> int:
    """How many the filter lets through."""
    return int(fetch.tuples(db, f"{_CHOSEN} SELECT count(*) FROM chosen", _parameters(run_id, wanted))[0][0])


def neighbours(db: Database, run_id: str, candidate_id: str) -> NeighbourRow | None:
    """None when there is no kernel of that id."""
    sql = """SELECT number, previous_id, next_id FROM (SELECT candidate_id, number,
        lag(candidate_id) OVER inorder AS previous_id, lead(candidate_id) OVER inorder AS next_id FROM numbered
        WHERE run_id = ? WINDOW inorder AS (ORDER BY seq)) WHERE candidate_id = ? ORDER BY number DESC LIMIT 1"""
    return fetch.one(db, NeighbourRow, sql, [run_id, candidate_id])


def _parameters(run_id: str, wanted: KernelFilter) -> dict[str, object]:
    verdict = str(wanted.verdict) if wanted.verdict else None
    return {"run": run_id, "verdict": verdict, "text": " ".join(wanted.text.split())}
