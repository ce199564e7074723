"""The course of a run over its depths: what was tried, how the best rose, when the model saw profiles."""

from __future__ import annotations

from dataclasses import dataclass

from storage.database import Database
from storage.queries import fetch
from storage.queries.points import PLACE, SIBLINGS

COLUMNS = 300


@dataclass(frozen=True, slots=True)
class BeamRow:
    """The slowest and the fastest correct kernel of a depth (of neighbouring depths in a very long run)."""

    depth: float
    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True)
class RiseRow:
    """From this place of the axis on the best kernel so far has this speed-up. The last row: where the run is now."""

    x: float
    speedup: float


@dataclass(frozen=True, slots=True)
class ExposureRow:
    """Neighbouring depths in which the model saw a profile, or in which it saw none."""

    first: int
    last: int
    is_exposed: bool


def beam(db: Database, run_id: str) -> list[BeamRow]:
    """The spread of what was tried, by depth."""
    sql = """
    WITH tried AS (SELECT c.depth, t.speedup FROM candidates c JOIN timings t
            ON t.run_id = c.run_id AND t.candidate_id = c.candidate_id WHERE c.run_id = $run),
        every AS (SELECT greatest(1, ceil((max(depth) + 1) / $columns)) AS depths FROM tried)
    SELECT max(depth) AS depth, min(speedup) AS low, max(speedup) AS high, count(*) AS count
    FROM tried, every GROUP BY floor(depth / depths) ORDER BY depth"""
    return fetch.rows(db, BeamRow, sql, {"run": run_id, "columns": COLUMNS})


def rises(db: Database, run_id: str) -> list[RiseRow]:
    """The best so far, only where it changes: at the kernels that were the fastest when they were timed."""
    sql = f"""
    WITH placed AS (SELECT candidate_id, depth, {PLACE} AS x FROM candidates WHERE run_id = $run {SIBLINGS}),
        risen AS (SELECT p.x, r.speedup, r.seq FROM placed p JOIN records r
            ON r.run_id = $run AND r.candidate_id = p.candidate_id)
    SELECT x, speedup FROM (
        FROM risen UNION ALL
        SELECT (SELECT max(depth) FROM placed), max(speedup), 9e18 FROM risen)
    WHERE speedup IS NOT NULL ORDER BY seq"""
    return fetch.rows(db, RiseRow, sql, {"run": run_id})


def exposures(db: Database, run_id: str) -> list[ExposureRow]:
    """Stretches of depths that have a kernel, in order, by whether a prompt of the depth showed a profile."""
    sql = """
    WITH seen AS (SELECT DISTINCT depth FROM model_calls WHERE run_id = $run AND is_profile_exposed UNION
            SELECT depth FROM depths WHERE run_id = $run AND is_profile_exposed),
        reached AS (SELECT DISTINCT depth FROM candidates WHERE run_id = $run),
        told AS (SELECT depth, depth IN (SELECT depth FROM seen) AS is_exposed FROM reached),
        stretches AS (SELECT *, row_number() OVER (ORDER BY depth)
            - row_number() OVER (PARTITION BY is_exposed ORDER BY depth) AS stretch FROM told)
    SELECT min(depth) AS first, max(depth) AS last, is_exposed FROM stretches GROUP BY is_exposed, stretch
    ORDER BY first"""
    return fetch.rows(db, ExposureRow, sql, {"run": run_id})
