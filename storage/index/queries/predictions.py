"""What models predicted of their changes, beside what was measured."""

from __future__ import annotations

from dataclasses import dataclass

from storage.index.database import Database
from storage.index.queries import fetch
from storage.results import relative
from storage.results.relative import Relative

NEWEST = 1000


@dataclass(frozen=True, slots=True)
class Timed:
    """What tells how fast a kernel is beside another (`relative.gain`)."""

    speedup: float | None
    low: float | None
    high: float | None
    noise: float | None
    latency_ms: float | None


@dataclass(frozen=True, slots=True)
class PredictionRow:
    """A prediction that a kernel came of: `predicted` is base latency over the new kernel's, None where only the
    technique was named.

    `number` is that of the kernel that was measured for it, the one made or its last correct repair; None before one
    is correct and timed. Speed-ups with their noise are of that kernel and of the base, `base_number`.
    """

    run_id: str
    seq: int
    model: str
    technique: str
    predicted: float | None
    candidate_id: str | None
    number: int | None
    base_number: int | None
    speedup: float | None
    low: float | None
    high: float | None
    noise: float | None
    latency_ms: float | None
    base_speedup: float | None
    base_low: float | None
    base_high: float | None
    base_noise: float | None
    base_latency_ms: float | None
    is_on_gpu: bool

    @property
    def measured(self) -> Relative | None:
        """How much faster than the base it is (`relative.gain`); None unless both are timed."""
        base = Timed(self.base_speedup, self.base_low, self.base_high, self.base_noise, self.base_latency_ms)
        return relative.gain(self, base, is_on_gpu=self.is_on_gpu)


@dataclass(frozen=True, slots=True)
class CalibrationRow:
    """One model over all runs: how many gains it predicted, how many of them were measured, and medians over these.
    `ratio` is measured over predicted gain, so below 1 the model promises too much."""

    model: str
    predictions: int
    measured: int
    median_predicted: float | None
    median_measured: float | None
    median_ratio: float | None


_CALLED = "SELECT run_id, step, arg_max(model, seq) AS model FROM calls GROUP BY run_id, step"
# One row per prediction that a kernel came of, with the last of its line that is correct and timed, and the base. The
# line are the kernels that the prediction holds for: the one that was made, and its repairs. `{which}` chooses runs.
# `change`: what tells a change of a kernel from another, in all runs where device and both sources are known.
_RESULTS = """
lines AS (SELECT run_id, unnest(predictions) AS seq, candidate_id, base_id, number, speedup, low, high, noise,
    latency_ms, first_timed_seq FROM kernels WHERE {which}),
ended AS (SELECT l.run_id, l.seq, arg_max(l.base_id, l.candidate_id) AS base_id,
    arg_max(l.candidate_id, l.first_timed_seq) FILTER (WHERE l.speedup IS NOT NULL) AS candidate_id,
    arg_max(l.number, l.first_timed_seq) FILTER (WHERE l.speedup IS NOT NULL) AS number,
    arg_max(l.speedup, l.first_timed_seq) AS speedup,
    arg_max(l.low, l.first_timed_seq) AS low, arg_max(l.high, l.first_timed_seq) AS high,
    arg_max(l.noise, l.first_timed_seq) AS noise,
    arg_max(l.latency_ms, l.first_timed_seq) AS latency_ms FROM lines l GROUP BY l.run_id, l.seq),
results AS (SELECT e.*, p.step, p.technique, p.gain AS predicted, b.number AS base_number, b.speedup AS base_speedup,
    b.low AS base_low, b.high AS base_high, b.noise AS base_noise, b.latency_ms AS base_latency_ms,
    t.toolchain <> 'cpu' AS is_on_gpu, t.created_at,
    CASE WHEN t.device_model <> '' AND b.source_blob <> '' AND k.source_blob <> '' THEN [t.task_name, t.sizes,
        t.language, t.toolchain, t.device_model, t.precision, b.source_blob, k.source_blob]
        ELSE [e.run_id, e.seq::VARCHAR] END AS change
    FROM ended e JOIN runs t ON t.run_id = e.run_id JOIN predictions p ON p.run_id = e.run_id AND p.seq = e.seq
    LEFT JOIN kernels b ON b.run_id = e.run_id AND b.candidate_id = e.base_id
    LEFT JOIN kernels k ON k.run_id = e.run_id AND k.candidate_id = e.candidate_id)
"""
_ROWS = f"""
WITH called AS ({_CALLED}), {_RESULTS}
SELECT p.run_id, p.seq, coalesce(c.model, '') AS model, p.technique, p.predicted, p.candidate_id,
    p.number, p.base_number, p.speedup, p.low, p.high, p.noise, p.latency_ms, p.base_latency_ms, p.is_on_gpu,
    CASE WHEN p.speedup IS NOT NULL THEN p.base_speedup END AS base_speedup,
    CASE WHEN p.speedup IS NOT NULL THEN p.base_low END AS base_low,
    CASE WHEN p.speedup IS NOT NULL THEN p.base_high END AS base_high,
    CASE WHEN p.speedup IS NOT NULL THEN p.base_noise END AS base_noise
FROM results p LEFT JOIN called c ON c.run_id = p.run_id AND c.step = p.step
"""


def prediction(db: Database, run_id: str, candidate_id: str) -> PredictionRow | None:
    """What was predicted of a kernel, or of the one that it repairs; None where nothing was."""
    if not fetch.has_rows(db, "predictions", run_id):
        return None
    sql = f"""{_ROWS.format(which="run_id = $run")} WHERE p.seq = (SELECT list_max(predictions) FROM kernels
        WHERE run_id = $run AND candidate_id = $candidate)"""
    return fetch.one(db, PredictionRow, sql, {"run": run_id, "candidate": candidate_id})


# A model's prediction of one change counts once: runs that a recording answers alike repeat it.
_ONCE = """QUALIFY row_number() OVER (PARTITION BY c.model, p.technique, p.predicted, p.change
    ORDER BY p.created_at, p.run_id, p.seq) = 1"""
_OWN = "run_id IN (SELECT run_id FROM runs WHERE replay_of IS NULL AND NOT is_example)"
_MEASURED = f"""
WITH called AS ({_CALLED}), {_RESULTS.format(which=_OWN)}
SELECT c.model, p.predicted, p.speedup / p.base_speedup / CASE WHEN p.is_on_gpu
        AND p.speedup * p.latency_ms >= {relative.MOVED} * p.base_speedup * p.base_latency_ms
    THEN p.speedup * p.latency_ms / (p.base_speedup * p.base_latency_ms) ELSE 1 END AS measured
FROM results p JOIN called c ON c.run_id = p.run_id AND c.step = p.step
WHERE p.predicted > 0 AND isfinite(p.predicted) {_ONCE}
"""


def calibration(db: Database) -> list[CalibrationRow]:
    """Every model that has predicted a gain, the one with most first. What a replay tells once more does not count, nor
    does the same prediction of the same change in a later run."""
    sql = f"""SELECT model, count(*) AS predictions, count(measured) AS measured,
        median(predicted) FILTER (WHERE measured IS NOT NULL) AS median_predicted, median(measured) AS median_measured,
        median(measured / predicted) AS median_ratio
        FROM ({_MEASURED}) GROUP BY model ORDER BY predictions DESC, model"""
    return fetch.rows(db, CalibrationRow, sql)


def measured_predictions(db: Database, newest: int = NEWEST) -> list[PredictionRow]:
    """Predicted gains whose kernel was measured, of the predictions that count for `calibration`, the newest first."""
    sql = f"""{_ROWS.format(which=_OWN)}
        WHERE p.predicted > 0 AND isfinite(p.predicted) AND p.speedup > 0 AND p.base_speedup > 0 {_ONCE}
        ORDER BY p.created_at DESC, p.seq DESC LIMIT ?"""
    return fetch.rows(db, PredictionRow, sql, [newest])
