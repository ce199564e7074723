"""What came of the runs on each model of device. Imported by itself."""

from __future__ import annotations

from dataclasses import dataclass

from storage.database import Database
from storage.hardware_limit import REACHED
from storage.queries import fetch


@dataclass(frozen=True, slots=True)
class DeviceModelRow:
    """One model of device over all runs but replays and examples: its runs, kernels judged, correct and timed, and
    the best speed-up of any, with its task. `last_at` is when the last one was timed, in epoch seconds."""

    model: str
    runs: int
    judged: int
    passed: int
    timed: int
    best_speedup: float | None
    best_noise: float | None
    best_task: str | None
    last_at: float | None


_RESULTS = f"""
WITH own AS (SELECT l.run_id, replace(arg_min(l.device, l.seq), '{REACHED}', '') AS model FROM limits l
    JOIN runs r USING (run_id) WHERE r.replay_of IS NULL AND NOT r.is_example GROUP BY l.run_id),
 judged AS (SELECT o.model, count(v.verdict) AS judged, count(*) FILTER (WHERE v.verdict = 'passed') AS passed
    FROM own o JOIN verdicts v USING (run_id) GROUP BY o.model),
 timed AS (SELECT o.model, count(*) AS timed, max(t.speedup) AS best_speedup, arg_max(t.noise, t.speedup) AS best_noise,
    arg_max(r.task_name, t.speedup) AS best_task, max(e.time) AS last_at
    FROM own o JOIN timings t USING (run_id) JOIN runs r USING (run_id)
    JOIN evaluations e ON e.run_id = t.run_id AND e.seq = t.seq GROUP BY o.model)
SELECT o.model, count(*) AS runs, coalesce(any_value(j.judged), 0) AS judged,
    coalesce(any_value(j.passed), 0) AS passed, coalesce(any_value(t.timed), 0) AS timed,
    any_value(t.best_speedup) AS best_speedup, any_value(t.best_noise) AS best_noise,
    any_value(t.best_task) AS best_task, any_value(t.last_at) AS last_at
FROM own o LEFT JOIN judged j USING (model) LEFT JOIN timed t USING (model)
GROUP BY o.model ORDER BY runs DESC, o.model"""


def device_results(db: Database) -> list[DeviceModelRow]:
    """The model with most runs first."""
    return fetch.rows(db, DeviceModelRow, _RESULTS)
