"""What one kernel has cost: the calls that led to it, and the time to make and to judge it."""

from __future__ import annotations

from dataclasses import dataclass

from storage.database import Database
from storage.queries import fetch


@dataclass(frozen=True, slots=True)
class CostRow:
    """`calls` led to the kernel: those of the step that made it and of the diagnosis or review before it; None is
    unknown.

    Seconds are the engine's: in the steps that wrote the kernel, and in those that built, checked, timed and profiled
    it.
    """

    calls: int
    tokens: int | None
    cost_usd: float | None
    writing_s: float
    judging_s: float


def kernel_cost(db: Database, run_id: str, candidate_id: str) -> CostRow:
    """What a kernel has cost so far."""
    sql = """
    WITH own AS (SELECT step, parent_id FROM candidates WHERE run_id = $run AND candidate_id = $candidate),
     begun AS (SELECT DISTINCT step, kind, candidate_id FROM steps WHERE run_id = $run AND phase = 'started'),
     wrote AS (SELECT step FROM own UNION SELECT d.step FROM diagnoses d JOIN own ON d.candidate_id = own.parent_id
        WHERE d.run_id = $run AND d.step < own.step
        UNION SELECT step FROM reviewed WHERE run_id = $run AND made_id = $candidate),
     judged AS (SELECT step FROM begun WHERE candidate_id = $candidate
        AND kind IN ('compile', 'check', 'time', 'profile')),
     lasted AS (SELECT step, sum(seconds) AS seconds FROM steps WHERE run_id = $run AND phase = 'finished'
        GROUP BY step),
     paid AS (SELECT * FROM model_calls WHERE run_id = $run AND step IN (SELECT step FROM wrote))
    SELECT (SELECT count(*) FROM paid) AS calls,
        (SELECT CASE WHEN count(*) = 0 THEN 0 WHEN count(*) = count(input_tokens)
            THEN sum(input_tokens + coalesce(output_tokens, 0))::BIGINT END
            FROM paid) AS tokens,
        (SELECT CASE WHEN count(*) = 0 THEN 0.0 WHEN count(*) = count(cost_usd) THEN sum(cost_usd) END FROM paid)
            AS cost_usd,
        coalesce((SELECT sum(seconds) FROM lasted WHERE step IN (SELECT step FROM wrote)), 0.0) AS writing_s,
        coalesce((SELECT sum(seconds) FROM lasted WHERE step IN (SELECT step FROM judged)), 0.0) AS judging_s"""
    found = fetch.one(db, CostRow, sql, {"run": run_id, "candidate": candidate_id})
    assert found is not None  # a query without FROM always gives one row
    return found
