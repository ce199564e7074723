"""Failed kernels grouped by what went wrong with them: one row per verdict and message, figures left out."""

from __future__ import annotations

from dataclasses import dataclass

from storage.database import Database
from storage.queries import fetch
from storage.records import Verdict

# Two messages are of one class when they differ in figures alone: sizes, indices, values.
MESSAGE_CLASS = "regexp_replace(coalesce(message, ''), '[-+]?[0-9][0-9.,]*(e[-+]?[0-9]+)?', '#', 'g')"


@dataclass(frozen=True, slots=True)
class ErrorGroupRow:
    """`message` is that of the newest kernel; `candidate_ids` and `numbers` name the newest ones, newest first."""

    verdict: Verdict
    message: str
    count: int
    first_depth: int
    last_depth: int
    candidate_ids: list[str]
    numbers: list[int]


def error_groups(db: Database, run_id: str, limit: int = 12, named: int = 6) -> list[ErrorGroupRow]:
    """The groups with the most kernels first."""
    sql = f"""
    WITH n AS (SELECT candidate_id, depth, number FROM numbered
            WHERE run_id = $run),
        failed AS (SELECT v.verdict, v.message, v.seq, n.* FROM verdicts v JOIN n USING (candidate_id)
            WHERE v.run_id = $run AND v.verdict <> 'passed')
    SELECT verdict, arg_max(coalesce(message, ''), seq) AS message, count(*) AS count, min(depth) AS first_depth,
        max(depth) AS last_depth, list(candidate_id ORDER BY number DESC)[1:$named] AS candidate_ids,
        list(number ORDER BY number DESC)[1:$named] AS numbers
    FROM failed GROUP BY verdict, {MESSAGE_CLASS} ORDER BY count DESC, max(seq) DESC LIMIT $limit"""
    return fetch.rows(db, ErrorGroupRow, sql, {"run": run_id, "limit": limit, "named": named})


def count_error_groups(db: Database, run_id: str) -> int:
    """How many groups there are in all."""
    sql = f"""SELECT count(*) FROM (SELECT DISTINCT verdict, {MESSAGE_CLASS} FROM verdicts
        WHERE run_id = ? AND verdict <> 'passed')"""
    return int(fetch.tuples(db, sql, [run_id])[0][0])
