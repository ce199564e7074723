"""Several runs side by side: what each had reached after how much work, and under which conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from storage.index.database import Database
from storage.index.queries import fetch
from storage.index.queries.attempts import RISING
from storage.index.queries.runs import LABELLED, WRITER
from storage.run.settings import DepthOutcome


@dataclass(frozen=True, slots=True)
class RunChoice:
    """One run as a list offers it. Replays are not offered: they hold nothing of their own. `device` is empty before
    the hardware limit was measured; `sizes` is JSON text; `name` is what a person calls the run, empty for most."""

    run_id: str
    task_name: str
    model: str
    toolchain: str
    language: str
    created_at: float
    device: str
    sizes: str
    is_example: bool = False
    name: str = ""


@dataclass(frozen=True, slots=True)
class ReachedRow:
    """One finished depth of a run and what had been spent by then.

    `best_speedup` is that of the best kernel so far, None before the first correct one; `speedup` that of the depth's
    own kernel, None when it was given up. `engine_s` is the engine's time in steps, in seconds: pauses do not
    count. `tokens` and `cost_usd` are None once any call before had not been counted or priced.
    """

    run_id: str
    seq: int
    depth: int
    outcome: DepthOutcome
    candidate_id: str | None
    speedup: float | None
    best_speedup: float | None
    best_noise: float | None
    is_profile_exposed: bool
    engine_s: float
    calls: int
    tokens: int | None
    cost_usd: float | None
    device_s: float


@dataclass(frozen=True, slots=True)
class TimedRow:
    """One correct and timed kernel of a run and what had been spent when it was timed; units as in ReachedRow."""

    run_id: str
    candidate_id: str
    number: int
    depth: int
    speedup: float
    low: float
    high: float
    noise: float
    summary: str
    engine_s: float
    calls: int
    tokens: int | None
    cost_usd: float | None
    device_s: float
    latency_ms: float


@dataclass(frozen=True, slots=True)
class ConditionsRow:
    """What must be alike for two runs' figures to be comparable, and what they have spent in all.

    `device` is empty before the hardware limit was measured. `sizes` is JSON text. `exposed_at` is the first depth
    whose prompt showed a profile, None when none did. `second_speedup` is that of the further baseline over eager.
    """

    run_id: str
    task_name: str
    sizes: str
    toolchain: str
    language: str
    device: str
    precision: str
    baseline: str
    exposed_at: int | None
    engine_s: float
    device_s: float
    tokens: int | None
    cost_usd: float | None
    second_name: str
    second_speedup: float | None
    second_noise: float | None


_CHOSEN = "(SELECT unnest($ids::VARCHAR[]))"
_SPENT = """spent_s AS engine_s, spent_calls AS calls, spent_tokens AS tokens, spent_usd AS cost_usd,
    spent_device_s AS device_s"""


def comparable_runs(db: Database) -> list[RunChoice]:
    """Every run that can be compared, newest first."""
    sql = f"""SELECT r.run_id, r.task_name, {WRITER} AS model, r.toolchain, r.language, r.created_at,
        r.device_model AS device, r.sizes, r.is_example, coalesce(l.name, '') AS name
        FROM runs r LEFT JOIN {LABELLED} l ON l.run_id = r.run_id
        WHERE r.replay_of IS NULL ORDER BY r.created_at DESC, r.run_id DESC"""
    return fetch.rows(db, RunChoice, sql)


def reached(db: Database, run_ids: Sequence[str]) -> list[ReachedRow]:
    """Every finished depth of these runs, in the order they ended."""
    sql = f"""SELECT d.run_id, d.seq, d.depth, d.outcome, d.candidate_id, d.is_profile_exposed,
        CASE WHEN d.outcome = 'accepted' THEN t.speedup END AS speedup,
        r.speedup AS best_speedup, r.noise AS best_noise, {_SPENT.replace("spent_", "d.spent_")}
        FROM depths d LEFT JOIN kernels t ON t.run_id = d.run_id AND t.candidate_id = d.candidate_id
        ASOF LEFT JOIN {RISING.format(which=f"run_id IN {_CHOSEN}")} r ON r.run_id = d.run_id AND d.seq >= r.seq
        WHERE d.run_id IN {_CHOSEN} ORDER BY d.run_id, d.seq"""
    return fetch.rows(db, ReachedRow, sql, {"ids": list(run_ids)})


def timed_kernels(db: Database, run_ids: Sequence[str]) -> list[TimedRow]:
    """Every correct and timed kernel of these runs, in the order they were first timed."""
    sql = f"""SELECT run_id, candidate_id, number, depth, speedup, low, high, noise, summary, {_SPENT},
        latency_ms FROM kernels
        WHERE run_id IN {_CHOSEN} AND speedup IS NOT NULL ORDER BY run_id, first_timed_seq"""
    return fetch.rows(db, TimedRow, sql, {"ids": list(run_ids)})


def conditions(db: Database, run_ids: Sequence[str]) -> list[ConditionsRow]:
    """The conditions of each of these runs that is in the index."""
    sql = f"""
    WITH walked AS (SELECT run_id, min(depth) FILTER (WHERE is_profile_exposed) AS exposed_at
        FROM depths WHERE run_id IN {_CHOSEN} GROUP BY run_id),
    against AS (SELECT run_id, arg_min(baseline, seq) AS baseline FROM kernels
        WHERE run_id IN {_CHOSEN} AND speedup IS NOT NULL GROUP BY run_id)
    SELECT r.run_id, r.task_name, r.sizes, r.toolchain, r.language, r.device_model AS device, r.precision,
        coalesce(g.baseline, '') AS baseline, w.exposed_at, p.engine_s, p.device_s,
        CASE WHEN r.uncounted_calls = 0 THEN r.tokens END AS tokens, r.cost_usd,
        coalesce(r.second_name, '') AS second_name,
        r.second_speedup, r.second_noise
    FROM runs r JOIN progress p USING (run_id) LEFT JOIN walked w USING (run_id)
    LEFT JOIN against g USING (run_id)
    WHERE r.run_id IN {_CHOSEN} ORDER BY r.created_at, r.run_id"""
    return fetch.rows(db, ConditionsRow, sql, {"ids": list(run_ids)})
