"""What each model's kernels have come to over all runs, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass

from storage.index.database import Database
from storage.index.queries import fetch
from storage.index.queries.attempts import RISING


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One model over all runs but replays.

    `judged` of its kernels have a verdict, `passed` of them are correct; `built` were compiled, `compiled` of them
    without an error; `wins` became the best of their run and beat eager PyTorch beyond the noise.
    `best_speedup` is the largest of any kernel, with its noise and its 95 % interval.
    `cost_usd` adds the known costs; `unpriced` calls have none. `call_s` is the median of one call in seconds,
    `calls_s` the sum over all.
    """

    model: str
    runs: int
    calls: int
    judged: int
    passed: int
    built: int
    compiled: int
    wins: int
    best_speedup: float | None
    best_low: float | None
    best_high: float | None
    best_noise: float | None
    best_task: str | None
    tokens: int | None
    """None once those of any call are unknown."""
    cost_usd: float
    unpriced: int
    call_s: float | None
    calls_s: float


_FIGURES = f"""
WITH counted AS (SELECT * FROM calls
        WHERE run_id NOT IN (SELECT run_id FROM runs WHERE replay_of IS NOT NULL OR is_example)),
 paid AS (SELECT model, count(DISTINCT run_id) AS runs, count(*) AS calls,
    CASE WHEN count(input_tokens + output_tokens) = count(*)
        THEN sum(input_tokens + output_tokens)::BIGINT END AS tokens,
    coalesce(sum(cost_usd), 0.0) AS cost_usd, count(*) - count(cost_usd) AS unpriced, median(seconds) AS call_s,
    coalesce(sum(seconds), 0.0) AS calls_s FROM counted GROUP BY model),
 wrote AS (SELECT run_id, step, arg_max(model, seq) AS model FROM counted GROUP BY run_id, step),
 made AS (SELECT w.model, k.verdict, k.built, k.speedup, k.low, k.high, k.noise, r.low AS record_low, runs.task_name
    FROM kernels k JOIN wrote w USING (run_id, step) JOIN runs USING (run_id)
    LEFT JOIN {RISING.format(which="TRUE")} r ON r.run_id = k.run_id AND r.candidate_id = k.candidate_id),
 figures AS (SELECT model, count(verdict) AS judged, count(*) FILTER (WHERE verdict = 'passed') AS passed,
    count(built) AS built, count(*) FILTER (WHERE built = 'passed') AS compiled,
    count(*) FILTER (WHERE record_low > 1) AS wins, max(speedup) AS best_speedup,
    arg_max(low, speedup) AS best_low, arg_max(high, speedup) AS best_high,
    arg_max(noise, speedup) AS best_noise, arg_max(task_name, speedup) AS best_task
    FROM made GROUP BY model)
SELECT p.model, p.runs, p.calls, coalesce(k.judged, 0) AS judged, coalesce(k.passed, 0) AS passed,
    coalesce(k.built, 0) AS built, coalesce(k.compiled, 0) AS compiled, coalesce(k.wins, 0) AS wins, k.best_speedup,
    k.best_low, k.best_high, k.best_noise, k.best_task, p.tokens, p.cost_usd, p.unpriced, p.call_s, p.calls_s
FROM paid p LEFT JOIN figures k USING (model) ORDER BY p.calls DESC, p.model
"""


def model_figures(db: Database) -> list[ModelRow]:
    """Every model that has been called, the busiest first."""
    return fetch.rows(db, ModelRow, _FIGURES)
