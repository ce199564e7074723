"""Profiles of candidates, in long form and against the nearest profiled ancestor."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from storage.index.database import Database
from storage.index.queries import fetch
from storage.results import counters
from storage.results.profile_results import DISTURBED, SourceLine, disturbance
from storage.results.vocabulary import KernelClass
from storage.run import exposure
from storage.run.exposure import Exposure

# Made from the call's time and what the task needs at least. The call has one time: that of its timing.
BY_LATENCY = (
    "memory throughput", "memory throughput share", "arithmetic throughput", "arithmetic throughput share",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """One profile. `summary` is what a model may be shown, `raw_blob` all that was printed, `report_blob` the
    profiler's own file in base64, `sass_blob` the instructions with their samples, of `samples` in all. `ceilings` are
    rates by name in base units, `evidence` says how it was taken.

    `failure` is empty unless no profile could be had; everything but candidate, step and time is empty then.
    """

    seq: int
    at: float
    step: int
    candidate_id: str
    kernel_hash: str
    bound: str
    summary: str
    raw_blob: str | None
    report_blob: str | None
    sass_blob: str | None
    samples: int
    seconds: float | None
    missing: list[str]
    ceilings: Mapping[str, float]
    evidence: Mapping[str, str]
    failure: str

    @property
    def disturbance(self) -> str:
        """What disturbed it, empty if nothing did; also of profiles from before that was noted."""
        return self.evidence.get(DISTURBED, "")


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One value of a profile in the unit named. `launch` counts kernel launches from 0; -1 is the whole call."""

    candidate_id: str
    kernel_hash: str
    launch: int
    kernel: str
    metric: str
    unit: str
    value: float


@dataclass(frozen=True, slots=True)
class MetricChangeRow:
    """A value beside that of the nearest profiled ancestor; both None when there is none to compare with. `kind` and
    `previous_kind` are what the operations mostly are of which it is a share of the peak (`tf32`); else empty."""

    launch: int
    kernel: str
    metric: str
    unit: str
    value: float
    previous: float | None
    previous_id: str | None
    kind: str = ""
    previous_kind: str = ""

    @property
    def is_of_another_peak(self) -> bool:
        """Whether the two are shares of different peaks, so that neither is the better one."""
        return bool(self.kind and self.previous_kind) and self.kind != self.previous_kind

    @property
    def ratio(self) -> float | None:
        """value / previous; None when there is no previous value or it is zero."""
        return self.value / self.previous if self.previous else None


@dataclass(frozen=True, slots=True)
class AdviceRow:
    """The profiler's own word on one launch, most worth first; `gain_percent` is of that launch, None if not told."""

    launch: int
    kernel: str
    rule: str
    kind: str
    text: str
    gain_percent: float | None


_METRICS = """SELECT candidate_id, kernel_hash, launch, kernel, metric, unit, value FROM profile_metrics
    WHERE run_id = $run AND candidate_id = $candidate AND seq = (SELECT max(seq) FROM profiles
    WHERE run_id = $run AND candidate_id = $candidate AND failure IS NULL) ORDER BY launch, kernel, metric"""


def profile(db: Database, run_id: str, candidate_id: str) -> ProfileRow | None:
    """The last profile of a candidate, or the reason why there is none; None when nobody asked for one."""
    sql = """SELECT seq, time AS at, step, candidate_id, coalesce(kernel_hash, '') AS kernel_hash,
        coalesce(bound, '') AS bound, coalesce(summary, '') AS summary, raw_blob, report_blob, sass_blob,
        coalesce(samples, 0) AS samples, seconds, coalesce(missing, []) AS missing,
        coalesce(ceilings, '{}') AS ceilings, coalesce(evidence, '{}') AS evidence, coalesce(failure, '') AS failure
        FROM profiles WHERE run_id = ? AND candidate_id = ? ORDER BY failure IS NOT NULL, seq DESC LIMIT 1"""
    found = fetch.one(db, ProfileRow, sql, [run_id, candidate_id])
    if found is None or found.failure or DISTURBED in found.evidence:
        return found
    profiled_s, timed_s = _call_times(db, run_id, candidate_id)
    why = _disturbance(found.evidence, profiled_s and 1e3 * profiled_s, timed_s and 1e3 * timed_s)
    return replace(found, evidence={**found.evidence, DISTURBED: why}) if why else found


def advice(db: Database, run_id: str, candidate_id: str) -> list[AdviceRow]:
    """The profiler's own advice in a candidate's last profile."""
    sql = """SELECT launch, kernel, rule, kind, text, gain_percent FROM profile_advice
        WHERE run_id = $run AND candidate_id = $candidate AND seq = (SELECT max(seq) FROM profiles
        WHERE run_id = $run AND candidate_id = $candidate AND failure IS NULL) ORDER BY number"""
    return fetch.rows(db, AdviceRow, sql, {"run": run_id, "candidate": candidate_id})


def source_lines(db: Database, run_id: str, candidate_id: str) -> list[SourceLine]:
    """The lines with samples of a candidate's last profile, most first."""
    sql = """SELECT kernel, file, line, samples, stall, stall_samples, text FROM profile_lines
        WHERE run_id = $run AND candidate_id = $candidate AND seq = (SELECT max(seq) FROM profiles
        WHERE run_id = $run AND candidate_id = $candidate AND failure IS NULL) ORDER BY number"""
    return fetch.rows(db, SourceLine, sql, {"run": run_id, "candidate": candidate_id})


def metrics(db: Database, run_id: str, candidate_id: str) -> list[MetricRow]:
    """All values of a candidate's last profile, with the call's time and what follows from it as it was timed."""
    found = _as_profiled(db, run_id, candidate_id)
    profiled_s, timed_s = _call_times(db, run_id, candidate_id)
    if not profiled_s or not timed_s:
        return found
    factors = {"latency": timed_s / profiled_s} | dict.fromkeys(BY_LATENCY, profiled_s / timed_s)
    return [replace(row, value=row.value * factors.get(row.metric, 1.0)) for row in found]


def _as_profiled(db: Database, run_id: str, candidate_id: str) -> list[MetricRow]:
    return fetch.rows(db, MetricRow, _METRICS, {"run": run_id, "candidate": candidate_id})


def _call_times(db: Database, run_id: str, candidate_id: str) -> tuple[float | None, float | None]:
    """Seconds of one call under the profiler and timed; None where it was not taken that way."""
    sql = """SELECT latency_ms / 1e3 FROM evaluations WHERE run_id = ? AND candidate_id = ? AND latency_ms IS NOT NULL
        ORDER BY seq DESC LIMIT 1"""
    timed = fetch.tuples(db, sql, [run_id, candidate_id])
    rows = _as_profiled(db, run_id, candidate_id)
    profiled = next((row.value for row in rows if row.metric == "latency" and row.launch < 0), None)
    return profiled, timed[0][0] if timed else None


def metric_changes(db: Database, run_id: str, candidate_id: str, against: str | None = None) -> list[MetricChangeRow]:
    """All values of a candidate's last profile beside those of another kernel of the run, or of the nearest profiled
    one it descends from.

    A disturbed profile is compared with none.
    """
    new = metrics(db, run_id, candidate_id)
    is_fit = bool(new) and not _is_disturbed(db, run_id, candidate_id)
    previous_id = (against or profiled_ancestor(db, run_id, candidate_id)) if is_fit else None
    old = metrics(db, run_id, previous_id) if previous_id else []
    there, here = _by_place(old), _by_place(new)
    kinds, none = (main_kind(new), main_kind(old)), ("", "")
    return [
        MetricChangeRow(
            n.launch,
            n.kernel,
            n.metric,
            n.unit,
            n.value,
            value,
            previous_id if value is not None else None,
            *(kinds if n.metric in counters.BY_KIND else none),
        )
        for n in new
        for value in [_counterpart(n, here[n.launch, n.metric], there.get((n.launch, n.metric), {}))]
    ]


OPERATIONS = " operations"  # how the names of counted operations end


def main_kind(rows: Sequence[MetricRow]) -> str:
    """What most operations of the profiled call are: `fp32`, `tf32` or `bf16`, for FP16 too, whose peak is the same;
    empty where they were not counted."""
    counted = {
        row.metric.removesuffix(OPERATIONS): row.value
        for row in rows
        if row.launch < 0 and not row.kernel and row.metric.endswith(OPERATIONS)
    }
    return counters.main_kind(counted)


_Place = tuple[int, str]


def _by_place(rows: list[MetricRow]) -> dict[_Place, dict[str, float]]:
    """Values by launch and metric, then by kernel."""
    found: dict[_Place, dict[str, float]] = {}
    for row in rows:
        found.setdefault((row.launch, row.metric), {}).setdefault(row.kernel, row.value)
    return found


def _counterpart(row: MetricRow, here: Mapping[str, float], there: Mapping[str, float]) -> float | None:
    """The old value of the same kernel; of a renamed one only where a launch has a single kernel before and after."""
    if row.kernel in there:
        return there[row.kernel]
    return next(iter(there.values())) if len(there) == len(here) == 1 else None


def planned_exposure(db: Database, run_id: str, kernel_class: KernelClass) -> Exposure | None:
    """When a run of this class on auto shows its model profiles, by what it was started with; None for no such run."""
    sql = "SELECT depths, expose_from_depth, profile_schedule, version FROM runs WHERE run_id = ?"
    found = fetch.tuples(db, sql, [run_id])
    return exposure.planned(kernel_class, *found[0]) if found else None


_TAKEN = """WITH taken AS (SELECT candidate_id, max(seq) AS seq, arg_max_null(evidence, seq) AS evidence FROM profiles
        WHERE run_id = $run AND failure IS NULL GROUP BY candidate_id),
 called AS (SELECT candidate_id, seq, arg_min(value, kernel) AS seconds FROM profile_metrics
        WHERE run_id = $run AND metric = 'latency' AND launch < 0 GROUP BY candidate_id, seq),
 timed AS (SELECT candidate_id, arg_max(latency_ms, seq) AS ms FROM evaluations
        WHERE run_id = $run GROUP BY candidate_id)
SELECT candidate_id, coalesce(evidence, '{}'), 1e3 * seconds, ms
FROM taken LEFT JOIN called USING (candidate_id, seq) LEFT JOIN timed USING (candidate_id) ORDER BY seq"""


def profiled_kernels(db: Database, run_id: str) -> list[str]:
    """Kernels that have a profile which nothing disturbed, in the order they were profiled."""
    found = fetch.tuples(db, _TAKEN, {"run": run_id})
    return [name for name, evidence, *times in found if not _disturbance(json.loads(evidence), *times)]


def _disturbance(evidence: Mapping[str, str], profiled_ms: float | None, timed_ms: float | None) -> str:
    """What disturbed a profile: as it was noted, or by its times."""
    if DISTURBED in evidence:
        return evidence[DISTURBED]
    return disturbance(profiled_ms, timed_ms) if profiled_ms and timed_ms else ""


def profiled_ancestor(db: Database, run_id: str, candidate_id: str) -> str | None:
    """The nearest kernel on the chain of parents that has a profile which nothing disturbed."""
    parents = dict(fetch.tuples(db, "SELECT candidate_id, parent_id FROM candidates WHERE run_id = ?", [run_id]))
    profiled = set(profiled_kernels(db, run_id))
    above = parents.get(candidate_id)
    for _ in parents:  # bounded, so that a journal written by hand with a circle in it cannot hold a page for ever
        if above is None or above in profiled:
            return above
        above = parents.get(above)
    return None


def _is_disturbed(db: Database, run_id: str, candidate_id: str) -> bool:
    found = profile(db, run_id, candidate_id)
    return found is not None and bool(found.disturbance)
