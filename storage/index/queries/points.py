"""The curve of a run over its depths, thinned to what a screen can show. Aggregated by the database."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

from storage.index.database import Database
from storage.index.queries import fetch
from storage.index.queries.attempts import COLUMNS as KERNEL_COLUMNS
from storage.index.queries.attempts import AttemptRow, about
from storage.results import relative
from storage.results.vocabulary import Verdict

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


@dataclass(frozen=True, slots=True)
class KernellessRow:
    """Depths that ended without a kernel, and without an edit that could not be applied; `reason` is the last one's."""

    depth: int
    count: int
    reason: str


GAP = "0.62 / greatest(count(*) OVER siblings - 1, 3)"  # between two kernels of a depth
PLACE = f"depth - (count(*) OVER siblings - row_number() OVER (siblings ORDER BY seq)) * {GAP}"
SIBLINGS = "WINDOW siblings AS (PARTITION BY depth)"

_PLACED = f"""
WITH placed AS (SELECT {KERNEL_COLUMNS}, {PLACE} AS x FROM kernels WHERE run_id = $run {SIBLINGS}),
 sorted AS (SELECT *, CASE WHEN $width = 0 THEN number ELSE floor(x / $width) END AS place FROM placed)
"""

# Points and failures by one query: planning it costs more than carrying it out.
_SHOWN = f"""{_PLACED}
SELECT * EXCLUDE (place), count(*) OVER alike AS count FROM sorted WHERE speedup IS NOT NULL OR verdict <> 'passed'
WINDOW alike AS (PARTITION BY place, verdict, candidate_id = $selected)
QUALIFY CASE WHEN speedup IS NULL THEN seq = max(seq) OVER alike ELSE is_best OR candidate_id = $selected
    OR number = max(number) FILTER (WHERE speedup IS NOT NULL) OVER ()
    OR number = arg_max(number, speedup) OVER (PARTITION BY place, is_accepted)
    OR number = arg_min(number, speedup) OVER (PARTITION BY place, is_accepted) END
ORDER BY seq
"""


@dataclass(frozen=True, slots=True)
class _ShownRow(PointRow):
    """`count` says how many failures it stands for."""

    count: int


def points(db: Database, run_id: str, selected_id: str = "", few: int = FEW_POINTS) -> list[PointRow]:
    """Correct and timed kernels in the order they were made.

    Of more than `few` kernels, the fastest and the slowest of each column of pixels; never without the best one, the
    newest one and the selected one.
    """
    names = [field.name for field in fields(PointRow)]
    rows = [row for row in _shown(db, run_id, selected_id, few) if row.speedup is not None]
    return [PointRow(*(getattr(row, name) for name in names)) for row in rows]


def failures(db: Database, run_id: str, selected_id: str = "", few: int = FEW_POINTS) -> list[FailureRow]:
    """Failed kernels by place and verdict, the selected one by itself; their counts add up to all there are."""
    return [
        FailureRow(r.x, r.verdict, r.count, r.candidate_id, r.number, r.depth, r.summary, r.message)
        for r in _shown(db, run_id, selected_id, few)
        if r.speedup is None and r.verdict
    ]


def _shown(db: Database, run_id: str, selected_id: str, few: int) -> list[_ShownRow]:
    parameters = about(db, run_id) | {"width": _width(db, run_id, few), "selected": selected_id}
    return fetch.rows(db, _ShownRow, _SHOWN, parameters)


def unapplied(db: Database, run_id: str, few: int = FEW_POINTS) -> list[UnappliedRow]:
    """Edits that could not be applied, by depth; in a very long run by stretches, told at their last depth."""
    sql = """
    WITH ended AS (SELECT step, depth FROM steps WHERE run_id = $run AND outcome = 'patch_failed'),
     tried AS (SELECT step, arg_max(reason, seq) AS reason FROM patches
        WHERE run_id = $run AND NOT is_applied GROUP BY step)
    SELECT max(depth) AS depth, count(*) AS count, coalesce(arg_max(reason, step), '') AS reason
    FROM ended LEFT JOIN tried USING (step)
    GROUP BY CASE WHEN $width = 0 THEN depth ELSE floor(depth / $width) END ORDER BY depth"""
    return fetch.rows(db, UnappliedRow, sql, {"run": run_id, "width": _width(db, run_id, few)})


def kernelless(db: Database, run_id: str, few: int = FEW_POINTS) -> list[KernellessRow]:
    """Depths that ended with nothing to be seen of them; in a very long run by stretches, told at their last depth."""
    sql = """
    WITH seen AS (SELECT depth FROM kernels WHERE run_id = $run
            UNION SELECT depth FROM steps WHERE run_id = $run AND outcome = 'patch_failed'),
     ended AS (SELECT depth, arg_max(reason, seq) AS reason FROM depths WHERE run_id = $run AND candidate_id IS NULL
        AND depth NOT IN (SELECT depth FROM seen) GROUP BY depth)
    SELECT max(depth) AS depth, count(*) AS count, coalesce(arg_max(reason, depth), '') AS reason
    FROM ended GROUP BY CASE WHEN $width = 0 THEN depth ELSE floor(depth / $width) END ORDER BY depth"""
    return fetch.rows(db, KernellessRow, sql, {"run": run_id, "width": _width(db, run_id, few)})


def _width(db: Database, run_id: str, few: int) -> float:
    """Depths to one column of pixels; 0 where every kernel is shown."""
    sql = "SELECT count(*), max(depth) FROM kernels WHERE run_id = ?"
    kernels, last = fetch.tuples(db, sql, [run_id])[0]
    return (last + 1) / COLUMNS if kernels > few else 0.0


@dataclass(frozen=True, slots=True)
class DepthSpreadRow:
    """The slowest and the fastest correct kernel of a depth (of neighbouring depths in a very long run)."""

    depth: float
    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True)
class RiseRow:
    """From this place of the axis on the best kernel so far, kernel `number`, has this speed-up; `is_gain` unless that
    is above the one before it by no more than the noise. The last row: where the run is now."""

    x: float
    speedup: float
    number: int
    is_gain: bool


class _Risen(NamedTuple):
    """The best kernel so far, as it was timed."""

    speedup: float
    number: int
    low: float
    high: float
    noise: float
    latency_ms: float


@dataclass(frozen=True, slots=True)
class ExposureRow:
    """Neighbouring depths in which the model saw a profile, or in which it saw none."""

    first: int
    last: int
    is_exposed: bool


def depth_spread(db: Database, run_id: str) -> list[DepthSpreadRow]:
    """The spread of what was tried, by depth."""
    sql = """
    WITH tried AS (SELECT depth, speedup FROM kernels WHERE run_id = $run AND speedup IS NOT NULL),
        every AS (SELECT greatest(1, ceil((max(depth) + 1) / $columns)) AS depths FROM tried)
    SELECT max(depth) AS depth, min(speedup) AS low, max(speedup) AS high, count(*) AS count
    FROM tried, every GROUP BY floor(depth / depths) ORDER BY depth"""
    return fetch.rows(db, DepthSpreadRow, sql, {"run": run_id, "columns": COLUMNS})


def rises(db: Database, run_id: str) -> list[RiseRow]:
    """The best so far along the axis, only where it changes: a kernel timed late counts from its own place on."""
    sql = f"""
    WITH placed AS (SELECT number, depth, speedup, low, high, noise, latency_ms, {PLACE} AS x
            FROM kernels WHERE run_id = $run {SIBLINGS}),
        risen AS (SELECT x, speedup, number, low, high, noise, latency_ms, FALSE AS is_last FROM placed
            WHERE speedup IS NOT NULL QUALIFY speedup > coalesce(max(speedup) OVER (ORDER BY x
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0))
    SELECT x, speedup, number, low, high, noise, latency_ms FROM (
        FROM risen UNION ALL SELECT (SELECT max(depth) FROM placed), max(speedup), arg_max(number, speedup),
            arg_max(low, speedup), arg_max(high, speedup), arg_max(noise, speedup), arg_max(latency_ms, speedup), TRUE
            FROM risen)
    WHERE speedup IS NOT NULL ORDER BY is_last, x"""
    (toolchain,) = fetch.of_run(db, run_id, "toolchain") or ("cpu",)
    rows: list[RiseRow] = []
    before: _Risen | None = None
    for x, *figures in fetch.tuples(db, sql, {"run": run_id}):
        risen = _Risen(*figures)
        ratio = relative.gain(risen, before, is_on_gpu=toolchain != "cpu") if before else None
        is_gain = before is None or before.number == risen.number or (ratio is not None and ratio.is_faster)
        rows.append(RiseRow(x, risen.speedup, risen.number, is_gain))
        before = risen
    return rows


def exposures(db: Database, run_id: str) -> list[ExposureRow]:
    """Stretches of depths that have a kernel, in order, by whether a prompt of the depth showed a profile."""
    sql = """
    WITH seen AS (SELECT DISTINCT depth FROM calls WHERE run_id = $run AND is_profile_exposed UNION
            SELECT depth FROM depths WHERE run_id = $run AND is_profile_exposed),
        reached AS (SELECT DISTINCT depth FROM kernels WHERE run_id = $run),
        depths_shown AS (SELECT depth, depth IN (SELECT depth FROM seen) AS is_exposed FROM reached),
        stretches AS (SELECT *, row_number() OVER (ORDER BY depth)
            - row_number() OVER (PARTITION BY is_exposed ORDER BY depth) AS stretch FROM depths_shown)
    SELECT min(depth) AS first, max(depth) AS last, is_exposed FROM stretches GROUP BY is_exposed, stretch
    ORDER BY first"""
    return fetch.rows(db, ExposureRow, sql, {"run": run_id})
