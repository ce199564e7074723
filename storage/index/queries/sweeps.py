"""Sweeps over the numbers that a kernel declares open to tuning, and their variants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from storage.index.database import Database
from storage.index.queries import fetch
from storage.results.vocabulary import Verdict


@dataclass(frozen=True, slots=True)
class SweepRow:
    """A sweep. `number` is that of the kernel as it was written, `speedup` its own, the better of its two timings;
    `kept_number` is that of the kernel which the sweep has made, None while there is none; `failed_again` what
    the kernel as it was written failed with when it was timed again."""

    candidate_id: str
    number: int
    tunables: str
    most: int
    speedup: float | None
    latency_ms: float | None
    kept_id: str | None
    kept_number: int | None
    kept_summary: str | None
    is_over: bool
    seconds: float
    failed_again: str | None = None


@dataclass(frozen=True, slots=True)
class VariantRow:
    """A variant. `is_full`: timed as any kernel is, else briefly, else not at all; `seconds` is all that it took."""

    number: int
    numbers: Mapping[str, object]
    verdict: Verdict
    message: str
    is_full: bool
    speedup: float | None
    low: float | None
    high: float | None
    latency_ms: float | None
    seconds: float


def sweep(db: Database, run_id: str, candidate_id: str) -> SweepRow | None:
    """The sweep of a kernel, or the one that has made it."""
    sql = """
    WITH asked AS (SELECT CASE WHEN origin = 'tuned' THEN parent_id ELSE candidate_id END AS candidate_id
        FROM candidates WHERE run_id = $run AND candidate_id = $candidate),
    made AS (SELECT parent_id, min(candidate_id) AS kept_id, min(number) AS kept_number,
        min(summary) AS kept_summary FROM numbered WHERE run_id = $run AND origin = 'tuned' GROUP BY parent_id)
    SELECT s.candidate_id, n.number, s.tunables, s.most, greatest(t.speedup, again.speedup) AS speedup, t.latency_ms,
        kept_id, kept_number, kept_summary,
        EXISTS (SELECT 1 FROM steps x WHERE x.run_id = $run AND x.step = s.step AND x.phase = 'finished') AS is_over,
        coalesce((SELECT sum(seconds) FROM variants v WHERE v.run_id = $run AND v.candidate_id = s.candidate_id), 0)
            AS seconds, again.message AS failed_again
    FROM sweeps s JOIN asked USING (candidate_id)
    JOIN numbered n ON n.run_id = s.run_id AND n.candidate_id = s.candidate_id
    LEFT JOIN timings t ON t.run_id = s.run_id AND t.candidate_id = s.candidate_id
    LEFT JOIN (SELECT candidate_id, max(speedup) AS speedup, max(message) FILTER (WHERE verdict <> 'passed') AS message
        FROM variants WHERE run_id = $run AND number = 0
        GROUP BY candidate_id) again ON again.candidate_id = s.candidate_id
    LEFT JOIN made ON made.parent_id = s.candidate_id
    WHERE s.run_id = $run QUALIFY row_number() OVER (ORDER BY s.seq) = 1"""
    return fetch.one(db, SweepRow, sql, {"run": run_id, "candidate": candidate_id})


def variants(db: Database, run_id: str, candidate_id: str) -> list[VariantRow]:
    """The variants of the sweep of this kernel, the fastest first; those that failed last."""
    sql = """
    SELECT * FROM (SELECT number, max(numbers) AS numbers,
        coalesce(arg_max(verdict, seq) FILTER (WHERE verdict <> 'passed'), 'passed') AS verdict,
        coalesce(arg_max(message, seq) FILTER (WHERE verdict <> 'passed'), '') AS message,
        count(*) FILTER (WHERE stage = 'time' AND NOT is_brief) > 0 AS is_full,
        arg_max(speedup, seq) AS speedup, arg_max(speedup_low, seq) AS low, arg_max(speedup_high, seq) AS high,
        arg_max(latency_ms, seq) AS latency_ms, sum(seconds) AS seconds
    FROM variants WHERE run_id = $run AND candidate_id = $candidate AND number > 0 GROUP BY number)
    ORDER BY verdict <> 'passed', speedup DESC NULLS LAST, number"""
    return fetch.rows(db, VariantRow, sql, {"run": run_id, "candidate": candidate_id})
