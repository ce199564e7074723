"""How often a model's kernels pass: each kernel or useless reply is a try, and what all tries of a run have cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from storage.index.database import Database
from storage.index.queries import fetch


@dataclass(frozen=True, slots=True)
class TryRow:
    """One try of a run: a kernel that the model has written and that was judged, or a reply that could not be used.

    `speedup` is None unless it is correct and timed. `prompt_blob` is the hash of the prompt that led to it.
    """

    run_id: str
    step: int
    is_passed: bool
    speedup: float | None
    prompt_blob: str | None


def tries(db: Database, run_ids: Sequence[str]) -> list[TryRow]:
    """The tries of these runs in the order they were made. A kernel that a person brought is none."""
    sql = """
    WITH chosen AS (SELECT unnest($runs::VARCHAR[]) AS run_id),
    asked AS (SELECT run_id, step, arg_min(prompt_blob, seq) AS prompt_blob FROM model_calls JOIN chosen USING (run_id)
        GROUP BY run_id, step),
    ended AS (SELECT run_id, step, max(seq) AS seq, arg_max(outcome, seq) AS outcome FROM steps
        JOIN chosen USING (run_id) WHERE phase = 'finished' GROUP BY run_id, step),
    written AS (SELECT run_id, step, verdict, speedup FROM candidates JOIN chosen USING (run_id)
        LEFT JOIN judgements USING (run_id, candidate_id) WHERE origin IN ('synthesis', 'repair', 'optimisation'))
    SELECT e.run_id, e.step, coalesce(w.verdict = 'passed', FALSE) AS is_passed, w.speedup, a.prompt_blob
    FROM ended e LEFT JOIN written w USING (run_id, step) LEFT JOIN asked a USING (run_id, step)
    WHERE (w.run_id IS NOT NULL AND w.verdict IS NOT NULL) OR (w.run_id IS NULL AND e.outcome = 'patch_failed')
    ORDER BY e.run_id, e.seq"""
    return fetch.rows(db, TryRow, sql, {"runs": list(run_ids)})


@dataclass(frozen=True, slots=True)
class RankingRow:
    """Kernels drawn for one step index, ranked before they were evaluated. `is_used`: by the reward model, else in the
    order of arrival; `correlation` is its rank correlation with the rewards of `kernels` earlier kernels, `arrival`
    that of their order of arrival."""

    depth: int
    drawn: int
    is_used: bool
    kernels: int
    correlation: float | None
    arrival: float | None
    why: str


def rankings(db: Database, run_id: str) -> list[RankingRow]:
    """Every ranking of a run, oldest first."""
    sql = """SELECT depth, len(candidates) AS drawn, len(scores) > 0 AS is_used, kernels, correlation, arrival, why
        FROM rankings WHERE run_id = $run QUALIFY seq = max(seq) OVER (PARTITION BY depth) ORDER BY depth"""
    return fetch.rows(db, RankingRow, sql, {"run": run_id})
