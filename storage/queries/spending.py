"""What a run has spent of what it may spend: per limit, and per role and model."""

from __future__ import annotations

from dataclasses import dataclass

from storage.database import Database
from storage.queries import fetch


@dataclass(frozen=True, slots=True)
class SpendingRow:
    """Calls of one role to one model. `cost_usd` None means that the cost of any of them is unknown.

    `uncounted` calls have no figures of tokens; `estimated` ones have figures counted from characters.
    """

    role: str
    model: str
    calls: int
    uncounted: int
    estimated: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class AllowanceRow:
    """The limits in force; None is no limit. `spent_s` is the engine time, as the view `worked` counts it."""

    depths: int
    max_model_calls: int | None
    max_tokens: int | None
    max_cost_usd: float | None
    max_wall_s: float | None
    target_speedup: float | None
    spent_s: float


def spending(db: Database, run_id: str) -> list[SpendingRow]:
    """One row per role and model, the dearest first."""
    sql = """SELECT role, model, count(*) AS calls, count(*) FILTER (WHERE input_tokens IS NULL) AS uncounted,
        count(*) FILTER (WHERE is_estimated) AS estimated,
        coalesce(sum(input_tokens), 0)::BIGINT AS input_tokens,
        coalesce(sum(cached_tokens), 0)::BIGINT AS cached_tokens,
        coalesce(sum(output_tokens), 0)::BIGINT AS output_tokens,
        coalesce(sum(reasoning_tokens), 0)::BIGINT AS reasoning_tokens,
        CASE WHEN count(*) = count(cost_usd) THEN sum(cost_usd) END AS cost_usd
        FROM model_calls WHERE run_id = ? GROUP BY role, model ORDER BY cost_usd DESC NULLS FIRST, calls DESC, role"""
    return fetch.rows(db, SpendingRow, sql, [run_id])


def allowance(db: Database, run_id: str) -> AllowanceRow | None:
    """The limits of a run, or None when it is not in the index."""
    sql = """SELECT depths, max_model_calls, max_tokens, max_cost_usd, max_wall_s, target_speedup,
        coalesce((SELECT sum(seconds) FROM worked WHERE run_id = $run), 0.0) AS spent_s
        FROM allowances WHERE run_id = $run"""
    return fetch.one(db, AllowanceRow, sql, {"run": run_id})
