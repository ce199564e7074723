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
WITH own AS (SELECT d.run_id, d.model FROM run_devices d
    JOIN runs r USING (run_id) WHERE r.replay_of IS NULL AND NOT r.is_example),
 judged AS (SELECT o.model, count(v.verdict) AS judged, count(*) FILTER (WHERE v.verdict = 'passed') AS passed
    FROM own o JOIN verdicts v USING (run_id) GROUP BY o.model),
 timed AS (SELECT o.model, count(*) AS timed, max(t.speedup) AS best_speedup, arg_max(t.noise, t.speedup) AS best_noise,
    arg_max(t.speedup_low, t.speedup) AS best_low, arg_max(t.speedup_high, t.speedup) AS best_high,
    arg_max(r.task_name, t.speedup) AS best_task, max(e.time) AS last_at
    FROM own o JOIN timings t USING (run_id) JOIN runs r USING (run_id)
    JOIN evaluations e ON e.run_id = t.run_id AND e.seq = t.seq GROUP BY o.model)
SELECT o.model, count(*) AS runs, coalesce(any_value(j.judged), 0) AS judged,
    coalesce(any_value(j.passed), 0) AS passed, coalesce(any_value(t.timed), 0) AS timed,
    any_value(t.best_speedup) AS best_speedup, any_value(t.best_low) AS best_low,
    any_value(t.best_high) AS best_high, any_value(t.best_noise) AS best_noise,
    any_value(t.best_task) AS best_task, any_value(t.last_at) AS last_at
FROM own o LEFT JOIN judged j USING (model) LEFT JOIN timed t USING (model)
GROUP BY o.model ORDER BY runs DESC, o.model"""


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
WITH asked AS (SELECT c.source_blob, r.task_name, r.sizes FROM candidates c JOIN runs r USING (run_id)
    WHERE c.run_id = $run AND c.candidate_id = $candidate),
 alike AS (SELECT DISTINCT c.run_id FROM candidates c JOIN asked a USING (source_blob)
    JOIN runs r ON r.run_id = c.run_id
    WHERE r.task_name = a.task_name AND r.sizes IS NOT DISTINCT FROM a.sizes AND r.replay_of IS NULL)
SELECT run_id, d.model FROM alike JOIN run_devices d USING (run_id) ORDER BY run_id"""
_BY_MODEL = """
WITH own AS (SELECT unnest($runs::VARCHAR[]) AS run_id, unnest($models::VARCHAR[]) AS model),
 found AS (SELECT o.model, t.run_id, t.candidate_id, t.latency_ms, t.speedup, t.speedup_low AS low,
    t.speedup_high AS high, t.noise, e.time, t.run_id = $run AND t.candidate_id = $candidate AS is_asked
    FROM timings t JOIN own o USING (run_id)
    JOIN candidates c ON c.run_id = t.run_id AND c.candidate_id = t.candidate_id
    JOIN evaluations e ON e.run_id = t.run_id AND e.seq = t.seq
    WHERE t.run_id IN (SELECT unnest($runs::VARCHAR[])) AND t.speedup IS NOT NULL
    AND c.source_blob = (SELECT source_blob FROM candidates WHERE run_id = $run AND candidate_id = $candidate)),
 counted AS (SELECT model, count(DISTINCT run_id) AS runs FROM found GROUP BY model)
SELECT f.* EXCLUDE (is_asked), k.runs FROM found f JOIN counted k USING (model)
QUALIFY row_number() OVER (PARTITION BY model ORDER BY f.is_asked DESC, f.time DESC) = 1
ORDER BY f.is_asked DESC, f.latency_ms"""


def same_kernel(db: Database, run_id: str, candidate_id: str) -> list[SameKernelRow]:
    """The kernel on each model of device, its own first; empty where it was timed on one alone."""
    asked = {"run": run_id, "candidate": candidate_id}
    model_of = dict(fetch.tuples(db, _SAME_SOURCE, asked))
    if len(set(model_of.values())) < 2:
        return []
    found = fetch.rows(
        db, SameKernelRow, _BY_MODEL, {"runs": list(model_of), "models": list(model_of.values()), **asked}
    )
    return found if len(found) > 1 else []
