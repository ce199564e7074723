"""A run's kernels as points of its curve, thinned to what a screen can show. Aggregated by the database."""

from __future__ import annotations

from dataclasses import dataclass

from storage.database import Database
from storage.queries import fetch
from storage.queries.attempts import AttemptRow
from storage.records import Verdict

COLUMNS = 300  # of two pixels or more each
FEW_POINTS = 900  # kernels up to which every one is a point of its own


@dataclass(frozen=True, slots=True)
class PointRow(AttemptRow):
    """A correct and timed kernel. `x` is its place on the axis of depths: the last kernel of a depth at the depth
    itself, earlier ones to its left, in order."""

    x: float


@dataclass(frozen=True, slots=True)
class FailureRow:
    """Kernels that failed in one way at one place of the axis; all but `count` is told of the newest of them."""

    x: float
    verdict: Verdict
    count: int
    candidate_id: str
    number: int
    depth: int
    summary: str
    message: str


@dataclass(frozen=True, slots=True)
class UnappliedRow:
    """Edits in one depth that could not be applied and so made no kernel; `reason` is the last one's."""

    depth: int
    count: int
    reason: str


PLACE = """depth - 0.62 * (count(*) OVER siblings - row_number() OVER (siblings ORDER BY seq))
    / greatest(count(*) OVER siblings - 1, 3)"""
SIBLINGS = "WINDOW siblings AS (PARTITION BY depth)"

_PLACED = f"""
WITH placed AS (SELECT *, {PLACE} AS x FROM attempts WHERE run_id = $run {SIBLINGS}),
 sorted AS (SELECT *, CASE WHEN $width = 0 THEN number ELSE floor(x / $width) END AS place FROM placed)
"""

_POINTS = f"""{_PLACED}
SELECT * EXCLUDE (place) FROM sorted WHERE speedup IS NOT NULL
QUALIFY is_best OR candidate_id = $selected OR number = max(number) OVER ()
    OR number = arg_max(number, speedup) OVER (PARTITION BY place, is_accepted)
    OR number = arg_min(number, speedup) OVER (PARTITION BY place, is_accepted)
ORDER BY seq
"""

_FAILURES = f"""{_PLACED}
SELECT arg_max(x, seq) AS x, verdict, count(*) AS count, arg_max(candidate_id, seq) AS candidate_id,
    max(number) AS number, arg_max(depth, seq) AS depth, arg_max(summary, seq) AS summary,
    arg_max(message, seq) AS message
FROM sorted WHERE verdict <> 'passed' GROUP BY place, verdict, candidate_id = $selected ORDER BY max(seq)
"""


def points(db: Database, run_id: str, selected_id: str = "", few: int = FEW_POINTS) -> list[PointRow]:
    """Correct and timed kernels in the order they were made.

    Of more than `few` kernels, the fastest and the slowest of each column of pixels; never without the best one, the
    newest one and the selected one.
    """
    parameters = {"run": run_id, "width": _width(db, run_id, few), "selected": selected_id}
    return fetch.rows(db, PointRow, _POINTS, parameters)


def failures(db: Database, run_id: str, selected_id: str = "", few: int = FEW_POINTS) -> list[FailureRow]:
    """Failed kernels by place and verdict, the selected one by itself; their counts add up to all there are."""
    parameters = {"run": run_id, "width": _width(db, run_id, few), "selected": selected_id}
    return fetch.rows(db, FailureRow, _FAILURES, parameters)


def unapplied(db: Database, run_id: str, few: int = FEW_POINTS) -> list[UnappliedRow]:
    """Edits that could not be applied, by depth; in a very long run by stretches, told at their last depth."""
    sql = """
    WITH ended AS (SELECT step FROM steps WHERE run_id = $run AND phase = 'finished' AND outcome = 'patch_failed'),
     begun AS (SELECT step, max(depth) AS depth FROM steps WHERE run_id = $run AND phase = 'started' GROUP BY step),
     tried AS (SELECT step, arg_max(reason, seq) AS reason FROM patches
        WHERE run_id = $run AND NOT is_applied GROUP BY step)
    SELECT max(depth) AS depth, count(*) AS count, coalesce(arg_max(reason, step), '') AS reason
    FROM ended JOIN begun USING (step) LEFT JOIN tried USING (step)
    GROUP BY CASE WHEN $width = 0 THEN depth ELSE floor(depth / $width) END ORDER BY depth"""
    return fetch.rows(db, UnappliedRow, sql, {"run": run_id, "width": _width(db, run_id, few)})


def _width(db: Database, run_id: str, few: int) -> float:
    """Depths to one column of pixels; 0 where every kernel is shown."""
    sql = "SELECT count(*), max(depth) FROM candidates WHERE run_id = ?"
    kernels, last = fetch.tuples(db, sql, [run_id])[0]
    return (last + 1) / COLUMNS if kernels > few else 0.0
