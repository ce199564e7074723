"""What came of the runs on each model of device, and of one kernel on several. Imported by itself."""

from __future__ import annotations

from dataclasses import dataclass

from storage.index.database import Database
from storage.index.queries import fetch


@dataclass(frozen=True, slots=True)
class DeviceModelRow:
    """One model of device over all runs but replays and examples: its runs, kernels judged, correct and timed, and
    the best speed-up of any, with the low end of its interval and its task. `last_at` is when the last one was timed,
    in epoch seconds."""

    model: str
    runs: int
    judged: int
    passed: int
    timed: int
    best_speedup: float | None
    best_low: float | None
    best_high: float | None
    best_noise: float | None
    best_task: str | None
    last_at: float | None


_RESULTS = """
WITH own AS (SELECT run_id, device_model AS model, task_name FROM runs
    WHERE replay_of IS NULL AND NOT is_example AND device_model <> ''),
 made AS (SELECT o.model, o.task_name, k.* FROM own o JOIN kernels k USING (run_id)),
 counted AS (SELECT model, count(verdict) AS judged, count(*) FILTER (WHERE verdict = 'passed') AS passed,
    count(speedup) AS timed, max(speedup) AS best_speedup, arg_max(noise, speedup) AS best_noise,
    arg_max(low, speedup) AS best_low, arg_max(high, speedup) AS best_high,
    arg_max(task_name, speedup) AS best_task, max(timed_at) FILTER (WHERE speedup IS NOT NULL) AS last_at
    FROM made GROUP BY model)
SELECT o.model, count(*) AS runs, coalesce(any_value(c.judged), 0) AS judged,
    coalesce(any_value(c.passed), 0) AS passed, coalesce(any_value(c.timed), 0) AS timed,
    any_value(c.best_speedup) AS best_speedup, any_value(c.best_low) AS best_low,
    any_value(c.best_high) AS best_high, any_value(c.best_noise) AS best_noise,
    any_value(c.best_task) AS best_task, any_value(c.last_at) AS last_at
FROM own o LEFT JOIN counted c USING (model) GROUP BY o.model ORDER BY runs DESC, o.model"""


def device_results(db: Database) -> list[DeviceModelRow]:
    """The model with most runs first."""
    return fetch.rows(db, DeviceModelRow, _RESULTS)


@dataclass(frozen=True, slots=True)
class SameKernelRow:
    """One source of one task, as it was timed on a model of device: the kernel asked about on its own, on the others
    the one that was timed last. `runs` is how many have timed it there; `time` is epoch seconds."""

    model: str
    run_id: str
    candidate_id: str
    latency_ms: float
    speedup: float
    low: float
    high: float
    noise: float
    runs: int
    time: float


_SAME_SOURCE = """
WITH asked AS (SELECT k.source_blob, r.task_name, r.sizes FROM kernels k JOIN runs r USING (run_id)
    WHERE k.run_id = $run AND k.candidate_id = $candidate),
 found AS (SELECT r.device_model AS model, k.run_id, k.candidate_id, k.latency_ms, k.speedup, k.low, k.high, k.noise,
    k.timed_at AS time, k.run_id = $run AND k.candidate_id = $candidate AS is_asked
    FROM kernels k JOIN asked a USING (source_blob) JOIN runs r ON r.run_id = k.run_id
    WHERE r.task_name = a.task_name AND r.sizes = a.sizes AND r.replay_of IS NULL AND r.device_model <> ''
    AND k.speedup IS NOT NULL),
 counted AS (SELECT model, count(DISTINCT run_id) AS runs FROM found GROUP BY model)
SELECT f.* EXCLUDE (is_asked), c.runs FROM found f JOIN counted c USING (model)
QUALIFY row_number() OVER (PARTITION BY model ORDER BY f.is_asked DESC, f.time DESC) = 1
ORDER BY f.is_asked DESC, f.latency_ms"""


def same_kernel(db: Database, run_id: str, candidate_id: str) -> list[SameKernelRow]:
    """The kernel on each model of device, its own first; empty where it was timed on one alone."""
    rows = fetch.rows(db, SameKernelRow, _SAME_SOURCE, {"run": run_id, "candidate": candidate_id})
    return rows if len(rows) > 1 else []
