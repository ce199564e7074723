"""Several runs side by side: what each had reached after how much work, and under which conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from storage.index.database import Database
from storage.index.queries import fetch
from storage.run.settings import DepthOutcome


@dataclass(frozen=True, slots=True)
class RunChoice:
    """One run as a list offers it. Replays are not offered: they hold nothing of their own. `device` is empty before
    the hardware limit was measured."""

    run_id: str
    task_name: str
    model: str
    toolchain: str
    language: str
    created_at: float
    device: str


@dataclass(frozen=True, slots=True)
class ReachedRow:
    """One finished depth of a run and what had been spent by then.

    `best_speedup` is that of the best kernel so far, None before the first correct one; `speedup` that of the depth's
    own kernel, None when it was given up. `engine_s` is the engine's time in finished steps, in seconds: pauses do not
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


@dataclass(frozen=True, slots=True)
class TimedRow:
    """One correct and timed kernel of a run and what had been spent when it was timed; units as in ReachedRow."""

    run_id: str
    candidate_id: str
    number: int
    depth: int
    speedup: float
    noise: float
    summary: str
    engine_s: float
    calls: int
    tokens: int | None
    cost_usd: float | None


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
    tokens: int | None
    cost_usd: float | None
    second_name: str
    second_speedup: float | None
    second_noise: float | None


_CHOSEN = "(SELECT unnest($runs::VARCHAR[]))"
_SPENT = f"""
spent AS (
    SELECT run_id, seq, coalesce(seconds, 0.0) AS seconds, 0 AS calls, 0 AS tokens, 0 AS uncounted, 0.0 AS cost,
        0 AS unpriced FROM worked WHERE run_id IN {_CHOSEN}
    UNION ALL
    SELECT run_id, seq, 0.0, 1, coalesce(input_tokens, 0) + coalesce(output_tokens, 0),
        (input_tokens IS NULL OR output_tokens IS NULL)::INT, coalesce(cost_usd, 0.0), (cost_usd IS NULL)::INT
    FROM model_calls WHERE run_id IN {_CHOSEN}),
total AS (SELECT run_id, seq, sum(seconds) OVER past AS engine_s, (sum(calls) OVER past)::BIGINT AS calls,
    CASE WHEN sum(uncounted) OVER past = 0 THEN (sum(tokens) OVER past)::BIGINT END AS tokens,
    CASE WHEN sum(unpriced) OVER past = 0 THEN sum(cost) OVER past END AS cost_usd
    FROM spent WINDOW past AS (PARTITION BY run_id ORDER BY seq))
"""
# Where nothing was spent yet, nothing is unknown either: then no row of `total` is found and all three are zero.
_SO_FAR = """coalesce(total.engine_s, 0.0) AS engine_s, coalesce(total.calls, 0) AS calls,
    CASE WHEN total.run_id IS NULL THEN 0 ELSE total.tokens END AS tokens,
    CASE WHEN total.run_id IS NULL THEN 0.0 ELSE total.cost_usd END AS cost_usd"""


def comparable_runs(db: Database) -> list[RunChoice]:
    """Every run that can be compared, newest first."""
    sql = """SELECT r.run_id, r.task_name, r.model, r.toolchain, r.language, r.created_at,
        coalesce(m.model, '') AS device FROM runs r LEFT JOIN run_devices m USING (run_id)
        WHERE r.replay_of IS NULL ORDER BY r.created_at DESC, r.run_id DESC"""
    return fetch.rows(db, RunChoice, sql)


def reached(db: Database, run_ids: Sequence[str]) -> list[ReachedRow]:
    """Every finished depth of these runs, in the order they ended."""
    sql = f"""
    WITH {_SPENT},
    risen AS (SELECT d.run_id, d.seq, d.depth, d.outcome, d.candidate_id, d.is_profile_exposed,
        CASE WHEN d.outcome = 'accepted' THEN t.speedup END AS speedup,
        r.speedup AS best_speedup, r.noise AS best_noise
        FROM depths d LEFT JOIN timings t ON t.run_id = d.run_id AND t.candidate_id = d.candidate_id
        ASOF LEFT JOIN records r ON r.run_id = d.run_id AND d.seq >= r.seq
        WHERE d.run_id IN {_CHOSEN})
    SELECT risen.*, {_SO_FAR}
    FROM risen ASOF LEFT JOIN total ON total.run_id = risen.run_id AND risen.seq >= total.seq
    ORDER BY risen.run_id, risen.seq"""
    return fetch.rows(db, ReachedRow, sql, {"runs": list(run_ids)})


def timed_kernels(db: Database, run_ids: Sequence[str]) -> list[TimedRow]:
    """Every correct and timed kernel of these runs, in the order they were timed."""
    sql = f"""
    WITH {_SPENT},
    numbered AS (SELECT run_id, candidate_id, depth, summary,
        number FROM numbered WHERE run_id IN {_CHOSEN}),
    found AS (SELECT n.run_id, n.candidate_id, n.number, n.depth, t.speedup, t.noise, n.summary, t.seq FROM numbered n
        JOIN timings t ON t.run_id = n.run_id AND t.candidate_id = n.candidate_id
        WHERE t.run_id IN {_CHOSEN} AND t.speedup IS NOT NULL)
    SELECT found.* EXCLUDE (seq), {_SO_FAR}
    FROM found ASOF LEFT JOIN total ON total.run_id = found.run_id AND found.seq >= total.seq
    ORDER BY found.run_id, found.seq"""
    return fetch.rows(db, TimedRow, sql, {"runs": list(run_ids)})


def conditions(db: Database, run_ids: Sequence[str]) -> list[ConditionsRow]:
    """The conditions of each of these runs that is in the index."""
    sql = f"""
    WITH {_SPENT},
    ended AS (SELECT run_id, max(engine_s) AS engine_s, arg_max([tokens], seq)[1] AS tokens,
        arg_max([cost_usd], seq)[1] AS cost_usd FROM total GROUP BY run_id),
    walked AS (SELECT run_id, min(depth) FILTER (WHERE is_profile_exposed) AS exposed_at
        FROM depths WHERE run_id IN {_CHOSEN} GROUP BY run_id),
    other AS (SELECT run_id, arg_max(name, seq) AS name, arg_max(speedup, seq) AS speedup, arg_max(noise, seq) AS noise
        FROM baselines
        WHERE run_id IN {_CHOSEN} GROUP BY run_id),
    against AS (SELECT run_id, any_value(baseline) AS baseline FROM timings WHERE run_id IN {_CHOSEN} GROUP BY run_id)
    SELECT r.run_id, r.task_name, coalesce(r.sizes, '') AS sizes, r.toolchain, r.language,
        coalesce(m.model, '') AS device,
        coalesce(r.precision, '') AS precision, coalesce(g.baseline, '') AS baseline, w.exposed_at,
        coalesce(e.engine_s, 0.0) AS engine_s, CASE WHEN e.run_id IS NULL THEN 0 ELSE e.tokens END AS tokens,
        CASE WHEN e.run_id IS NULL THEN 0.0 ELSE e.cost_usd END AS cost_usd, coalesce(o.name, '') AS second_name,
        o.speedup AS second_speedup, o.noise AS second_noise
    FROM runs r LEFT JOIN ended e USING (run_id) LEFT JOIN walked w USING (run_id)
    LEFT JOIN run_devices m USING (run_id) LEFT JOIN other o USING (run_id) LEFT JOIN against g USING (run_id)
    WHERE r.run_id IN {_CHOSEN} ORDER BY r.created_at, r.run_id"""
    return fetch.rows(db, ConditionsRow, sql, {"runs": list(run_ids)})
