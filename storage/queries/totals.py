"""Figures over all runs, for monitoring: how many in which state, what they used, how fast those at work are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from storage.database import Database
from storage.queries import fetch
from storage.records import RunState


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over every run in the index; what a replay tells once more is spent only once.

    `cost_usd` adds the known costs; `unpriced_calls` have none.
    """

    events: int
    input_tokens: int
    output_tokens: int
    cost_usd: float
    model_calls: int
    unpriced_calls: int
    problems: int


@dataclass(frozen=True, slots=True)
class StateCount:
    """How many runs are in a state by their journals."""

    state: RunState
    runs: int


@dataclass(frozen=True, slots=True)
class RunSpeedup:
    """The best speed-up of a run that is not over."""

    run_id: str
    task_name: str
    speedup: float


def totals(db: Database) -> Totals:
    """Sums over every run."""
    sql = """SELECT (SELECT count(*) FROM events) AS events, coalesce(sum(input_tokens), 0)::BIGINT AS input_tokens,
        coalesce(sum(output_tokens), 0)::BIGINT AS output_tokens, coalesce(sum(cost_usd), 0.0) AS cost_usd,
        count(*) AS model_calls, count(*) FILTER (WHERE cost_usd IS NULL) AS unpriced_calls,
        (SELECT count(*) FROM problems) AS problems
        FROM model_calls WHERE run_id NOT IN (SELECT run_id FROM runs WHERE replay_of IS NOT NULL)"""
    return fetch.rows(db, Totals, sql)[0]


def state_counts(db: Database, lost: Sequence[str] = ()) -> list[StateCount]:
    """Runs by state. `lost` are those that have no engine though they are not over: the index cannot know."""
    sql = """SELECT CASE WHEN list_contains(?::VARCHAR[], r.run_id) THEN 'lost' ELSE coalesce(l.state, 'starting') END
        AS state, count(*) AS runs FROM runs r LEFT JOIN
        (SELECT run_id, arg_max(state, seq) AS state FROM states GROUP BY run_id) l USING (run_id)
        GROUP BY 1 ORDER BY 1"""
    return fetch.rows(db, StateCount, sql, [list(lost)])


def best_speedups(db: Database, run_ids: list[str]) -> list[RunSpeedup]:
    """The best speed-up of these runs; those without a correct kernel are left out."""
    sql = """SELECT r.run_id, r.task_name, b.speedup FROM runs r JOIN ranked b USING (run_id)
        WHERE b.is_best AND r.run_id IN (SELECT unnest(?::VARCHAR[])) ORDER BY r.run_id"""
    return fetch.rows(db, RunSpeedup, sql, [run_ids])
