"""Failed kernels grouped by what went wrong, and what may need a person in many runs at once. Judges nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from storage.index.database import Database
from storage.index.queries import fetch, waiting
from storage.index.queries.predictions import Timed
from storage.index.queries.runs import last_events
from storage.results import relative
from storage.results.relative import Relative
from storage.results.vocabulary import Verdict

# Two messages are of one class when they differ in figures alone: sizes, indices, values.
MESSAGE_CLASS = "regexp_replace(coalesce(message, ''), '[-+]?[0-9][0-9.,]*(e[-+]?[0-9]+)?', '#', 'g')"


@dataclass(frozen=True, slots=True)
class ErrorGroupRow:
    """`message` is that of the newest kernel; `candidate_ids` and `numbers` name the newest ones, newest first."""

    verdict: Verdict
    message: str
    count: int
    first_depth: int
    last_depth: int
    candidate_ids: list[str]
    numbers: list[int]


def error_groups(db: Database, run_id: str, limit: int = 12, named: int = 6) -> list[ErrorGroupRow]:
    """The groups with the most kernels first."""
    sql = f"""
    WITH failed AS (SELECT verdict, message, judged_seq AS seq, candidate_id, depth, number FROM kernels
            WHERE run_id = $run AND verdict <> 'passed')
    SELECT verdict, arg_max(coalesce(message, ''), seq) AS message, count(*) AS count, min(depth) AS first_depth,
        max(depth) AS last_depth, list(candidate_id ORDER BY number DESC)[1:$named] AS candidate_ids,
        list(number ORDER BY number DESC)[1:$named] AS numbers
    FROM failed GROUP BY verdict, {MESSAGE_CLASS} ORDER BY count DESC, max(seq) DESC LIMIT $limit"""
    return fetch.rows(db, ErrorGroupRow, sql, {"run": run_id, "limit": limit, "named": named})


def count_error_groups(db: Database, run_id: str) -> int:
    """How many groups there are in all."""
    sql = f"""SELECT count(*) FROM (SELECT DISTINCT verdict, {MESSAGE_CLASS} FROM kernels
        WHERE run_id = ? AND verdict <> 'passed')"""
    return int(fetch.tuples(db, sql, [run_id])[0][0])


RECENT = 10


@dataclass(frozen=True, slots=True)
class TroubleRow:
    """Facts of one run; None where there is nothing of the kind yet. Each `_seq` names the event a fact rests on.

    newest_*: the last kernel that a depth accepted, its speed-up None once a later kernel is the best; base_*: the one
    that depth started from. `since_gain` counts the
    depths finished since the first kernel that the best does not beat beyond the noise, `patience` is what the run's
    own limit allows, None without one. recent_*: the last kernels judged, at most RECENT. last_*: the last two of them,
    when both failed. `idle_since`: the GPU of the run has been of no use to it since then because a model writes.
    """

    run_id: str
    newest_id: str | None
    newest_number: int | None
    newest_depth: int | None
    newest_seq: int | None
    newest_speedup: float | None
    newest_noise: float | None
    base_number: int | None
    base_speedup: float | None
    base_noise: float | None
    since_gain: int
    patience: int | None
    recent_judged: int
    recent_failed: int
    last_verdict: Verdict | None
    last_message: str
    last_seq: int | None
    is_repeated: bool
    budgets: list[str]
    budget_seq: int | None
    last_event_at: float | None
    base_id: str | None = None
    newest_low: float | None = None
    newest_high: float | None = None
    newest_latency_ms: float | None = None
    base_low: float | None = None
    base_high: float | None = None
    base_latency_ms: float | None = None
    is_on_gpu: bool = False
    idle_since: float | None = None

    @property
    def newest(self) -> Relative | None:
        """How much faster the newest kernel is than its base (`relative.gain`); None unless both are timed."""
        new = self.newest_speedup, self.newest_low, self.newest_high, self.newest_noise, self.newest_latency_ms
        base = self.base_speedup, self.base_low, self.base_high, self.base_noise, self.base_latency_ms
        return relative.gain(Timed(*new), Timed(*base), is_on_gpu=self.is_on_gpu)


_TROUBLES = f"""
WITH chosen AS (SELECT unnest($ids::VARCHAR[]) AS run_id),
 ended AS (SELECT * FROM depths WHERE run_id IN (SELECT run_id FROM chosen)),
 known AS (SELECT run_id, candidate_id, number, depth, speedup, low, high, noise, latency_ms, verdict, message,
    judged_seq AS seq, is_best OR is_tied AS is_top FROM kernels WHERE run_id IN (SELECT run_id FROM chosen)),
 tops AS (SELECT run_id, min(depth) AS depth, max(seq) AS seq FROM known WHERE is_top GROUP BY run_id),
 stale AS (SELECT e.run_id, count(*) AS since_gain FROM ended e JOIN tops g
    ON g.run_id = e.run_id AND e.depth > g.depth GROUP BY e.run_id),
 newest AS (SELECT run_id, arg_max(candidate_id, seq) AS id, arg_max(base_id, seq) AS base_id,
    arg_max(depth, seq) AS depth, max(seq) AS seq FROM ended WHERE outcome = 'accepted' GROUP BY run_id),
 judged AS (SELECT run_id, verdict, message, seq, {MESSAGE_CLASS} AS class FROM known WHERE verdict IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY seq DESC) <= {RECENT}),
 recent AS (SELECT run_id, count(*) AS judged, count(*) FILTER (WHERE verdict <> 'passed') AS failed,
    arg_max(verdict, seq, 2) AS verdicts, arg_max(class, seq, 2) AS classes, arg_max(message, seq) AS message,
    max(seq) AS seq FROM judged GROUP BY run_id)
SELECT r.run_id, w.id AS newest_id, n.number AS newest_number, w.depth AS newest_depth, w.seq AS newest_seq,
    CASE WHEN tops.seq > w.seq THEN NULL ELSE n.speedup END AS newest_speedup, n.noise AS newest_noise,
    b.number AS base_number, b.speedup AS base_speedup, b.noise AS base_noise,
    coalesce(stale.since_gain, 0) AS since_gain, NULL AS patience,
    coalesce(recent.judged, 0) AS recent_judged, coalesce(recent.failed, 0) AS recent_failed,
    nullif(recent.verdicts[1], 'passed') AS last_verdict,
    CASE WHEN recent.verdicts[1] <> 'passed' THEN coalesce(recent.message, '') ELSE '' END AS last_message,
    recent.seq AS last_seq,
    coalesce(len(recent.verdicts) = 2 AND recent.verdicts[1] <> 'passed' AND recent.verdicts[1] = recent.verdicts[2]
        AND recent.classes[1] = recent.classes[2], FALSE) AS is_repeated,
    [] AS budgets, NULL AS budget_seq, NULL AS last_event_at, w.base_id,
    n.low AS newest_low, n.high AS newest_high, n.latency_ms AS newest_latency_ms,
    b.low AS base_low, b.high AS base_high, b.latency_ms AS base_latency_ms
FROM chosen r LEFT JOIN newest w USING (run_id) LEFT JOIN stale USING (run_id) LEFT JOIN recent USING (run_id)
LEFT JOIN tops USING (run_id)
LEFT JOIN known n ON n.run_id = r.run_id AND n.candidate_id = w.id
LEFT JOIN known b ON b.run_id = r.run_id AND b.candidate_id = w.base_id
"""


def troubles(db: Database, run_ids: Sequence[str]) -> dict[str, TroubleRow]:
    """Facts by run; runs that are not in the index are left out."""
    if not run_ids:
        return {}
    # By themselves: they change with many events, and the rest far less often.
    limits = fetch.of_runs(db, run_ids, "stagnation_depths", "warned", "warned_seq", "toolchain")
    last, idle = last_events(db, run_ids), waiting.idle_since(db, run_ids)
    known = {}
    for row in fetch.rows(db, TroubleRow, _TROUBLES, {"ids": list(run_ids)}):
        if row.run_id in limits:
            patience, budgets, budget_seq, toolchain = limits[row.run_id]
            known[row.run_id] = replace(
                row, patience=patience, budgets=budgets, budget_seq=budget_seq, is_on_gpu=toolchain != "cpu",
                last_event_at=last.get(row.run_id), idle_since=idle.get(row.run_id),
            )  # fmt: skip
    return known
