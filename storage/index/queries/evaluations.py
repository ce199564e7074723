"""What building, checking and timing a candidate gave, the checks behind it, and the further baseline of its run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from storage import codec
from storage.index.database import Database
from storage.index.queries import fetch
from storage.results import relative
from storage.results.check_records import CheckOutcome, Group, StagedCheck, worst_of_stages
from storage.results.relative import Relative
from storage.results.timeline import Timeline
from storage.results.vocabulary import Verdict


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """The last build, check and timing of one candidate; None where a stage has not been reached.

    Seconds are wall time of each stage. `diagnostics` is the compiler's text cut for reading, `log_blob` all of it.
    Errors are as `CheckResult` defines them. Speed-up and latencies are None unless the candidate stands as correct.
    """

    candidate_id: str
    verdict: Verdict | None
    compile_ok: bool | None
    compile_verdict: Verdict | None
    compile_seconds: float | None
    compile_is_cached: bool | None
    diagnostics: str
    log_blob: str | None
    remarks: list[str]
    check_verdict: Verdict | None
    check_seconds: float | None
    max_error: float | None
    max_abs_error: float | None
    tolerance: float | None
    reference_error: float | None
    trials: list[str]
    precision: str
    seed: int | None
    message: str
    evidence: Mapping[str, str]
    timing_seconds: float | None
    timing_evidence: Mapping[str, str]
    speedup: float | None
    low: float | None
    high: float | None
    noise: float | None
    latency_ms: float | None
    baseline_latency_ms: float | None
    baseline: str
    sample_count: int


@dataclass(frozen=True, slots=True)
class TimingSamples:
    """Paired latencies in milliseconds in the order they were taken: pair i is (candidate_ms[i], baseline_ms[i])."""

    candidate_id: str
    baseline: str
    candidate_ms: list[float]
    baseline_ms: list[float]


@dataclass(frozen=True, slots=True)
class CorrectnessErrorRow:
    """One failed check. `first_index` is the first wrong element in row-major order.

    `heat` is the share of wrong elements (0..1) per cell of a grid over the output seen as a matrix. Where nothing
    could be compared (a crash, a time-out) `total_count` is None and the message says what happened.
    """

    seq: int
    at: float
    candidate_id: str
    number: int | None
    verdict: Verdict
    trial: str
    first_index: list[int]
    expected: float | None
    actual: float | None
    wrong_count: int | None
    total_count: int | None
    max_abs_error: float | None
    max_rel_error: float | None
    shape: list[int]
    heat: list[list[float]]
    message: str


_EVALUATION = """
WITH e AS (SELECT * FROM evaluations WHERE run_id = $run AND candidate_id = $candidate),
 b AS (SELECT * FROM e WHERE stage = 'compile' ORDER BY seq DESC LIMIT 1),
 c AS (SELECT * FROM e WHERE stage = 'check' ORDER BY seq DESC LIMIT 1),
 t AS (SELECT e.* FROM e JOIN timings x ON x.run_id = $run AND x.candidate_id = $candidate AND x.seq = e.seq)
SELECT k.candidate_id, v.verdict, b.verdict = 'passed' AS compile_ok, b.verdict AS compile_verdict,
    b.seconds AS compile_seconds, b.is_cached AS compile_is_cached, coalesce(b.detail, '') AS diagnostics, b.log_blob,
    coalesce(b.remarks, []) AS remarks, c.verdict AS check_verdict, c.seconds AS check_seconds, c.max_error,
    c.max_abs_error, c.tolerance, c.reference_error, coalesce(c.trials, []) AS trials,
    coalesce(c.precision, '') AS precision, c.seed, coalesce(c.detail, '') AS message,
    coalesce(c.evidence, '{}') AS evidence, t.seconds AS timing_seconds, coalesce(t.evidence, '{}') AS
    timing_evidence, t.speedup, t.speedup_low AS low, t.speedup_high AS high, t.noise, t.latency_ms,
    t.baseline_latency_ms, coalesce(t.baseline, '') AS baseline, coalesce(len(t.candidate_ms), 0) AS sample_count
FROM (SELECT DISTINCT candidate_id FROM e) k LEFT JOIN b ON TRUE LEFT JOIN c ON TRUE LEFT JOIN t ON TRUE
LEFT JOIN verdicts v ON v.run_id = $run AND v.candidate_id = k.candidate_id
"""


def evaluation(db: Database, run_id: str, candidate_id: str) -> EvaluationRow | None:
    """What is known about one candidate; None before its first build ended."""
    return fetch.one(db, EvaluationRow, _EVALUATION, {"run": run_id, "candidate": candidate_id})


def timelines(db: Database, run_id: str, candidate_id: str) -> dict[str, Timeline]:
    """Where the time of each stage went, by its name in order; without those that were remembered or are older."""
    sql = """SELECT stage, arg_max(timeline, seq) FROM (
        SELECT stage, timeline, seq FROM evaluations WHERE run_id = $run AND candidate_id = $candidate
        UNION ALL SELECT 'profile', timeline, seq FROM profiles WHERE run_id = $run AND candidate_id = $candidate)
        WHERE timeline IS NOT NULL GROUP BY stage ORDER BY min(seq)"""
    found = fetch.tuples(db, sql, {"run": run_id, "candidate": candidate_id})
    return {stage: codec.from_plain(Timeline, json.loads(text)) for stage, text in found}


def timing_samples(db: Database, run_id: str, candidate_id: str) -> TimingSamples | None:
    """Every pair of the last timing; None unless the candidate stands as correct and is timed."""
    sql = """SELECT e.candidate_id, e.baseline, e.candidate_ms, e.baseline_ms FROM evaluations e
        JOIN timings t ON t.run_id = e.run_id AND t.candidate_id = e.candidate_id AND t.seq = e.seq
        WHERE e.run_id = ? AND e.candidate_id = ? LIMIT 1"""
    return fetch.one(db, TimingSamples, sql, [run_id, candidate_id])


def correctness_errors(db: Database, run_id: str, candidate_id: str | None = None) -> list[CorrectnessErrorRow]:
    """Failed checks of a candidate, or of all, newest first."""
    sql = """
    WITH n AS (SELECT candidate_id, number FROM numbered WHERE run_id = $run)
    SELECT e.* EXCLUDE (run_id, time), e.time AS at, n.number FROM correctness_errors e LEFT JOIN n USING (candidate_id)
    WHERE e.run_id = $run AND ($candidate::VARCHAR IS NULL OR e.candidate_id = $candidate) ORDER BY e.seq DESC"""
    return fetch.rows(db, CorrectnessErrorRow, sql, {"run": run_id, "candidate": candidate_id})


@dataclass(frozen=True, slots=True)
class OutcomeCount:
    """How many checks of one candidate a person should look at, and how many led to a refusal."""

    candidate_id: str
    flagged: int
    broken: int


@dataclass(frozen=True, slots=True)
class _Row:
    candidate_id: str
    stage: str
    group: Group
    check: str
    standing: CheckOutcome  # the name of the column
    detail: str
    value: float | None
    limit: float | None

    def check_record(self) -> StagedCheck:
        return StagedCheck(
            self.group, self.check, self.standing, self.detail, self.value, self.limit, stages=(self.stage,)
        )


_ROWS = """
SELECT candidate_id, stage, check_group AS "group", check_name AS "check", standing, detail, value, allowed AS "limit"
FROM standings WHERE run_id = ? AND {which} ORDER BY candidate_id, seq, number, detail
"""


def check_records(db: Database, run_id: str, candidate_id: str) -> list[StagedCheck]:
    """One per check, by group, the worst first. A check made in several stages shows where it stood worst."""
    found = fetch.rows(db, _Row, _ROWS.format(which="candidate_id = ?"), [run_id, candidate_id])
    return worst_of_stages(row.check_record() for row in found)


def outcome_counts(db: Database, run_id: str, candidate_ids: Sequence[str] | None = None) -> dict[str, OutcomeCount]:
    """By candidate, of all or of those named; those with nothing to look at are left out."""
    which, parameters = "standing IN ('flagged', 'broken')", [run_id]
    if candidate_ids is not None:
        which += f" AND candidate_id IN ({', '.join('?' * len(candidate_ids)) or 'NULL'})"
        parameters += candidate_ids
    found = fetch.rows(db, _Row, _ROWS.format(which=which), parameters)
    return {name: _counted(name, rows) for name, rows in groupby(found, key=lambda row: row.candidate_id)}


def _counted(candidate_id: str, rows: Iterable[_Row]) -> OutcomeCount:
    found = [check_record.standing for check_record in worst_of_stages(row.check_record() for row in rows)]
    return OutcomeCount(candidate_id, found.count(CheckOutcome.FLAGGED), found.count(CheckOutcome.BROKEN))


@dataclass(frozen=True, slots=True)
class BaselineRow:
    """A further baseline against eager: `speedup` is eager latency over its own, with its 95 % interval low..high.

    `noise` is `TimingResult.noise`. Latencies are medians of one session, in milliseconds. All are None
    when it could not be had; `failure` says why and is empty otherwise.
    """

    name: str
    speedup: float | None
    low: float | None
    high: float | None
    noise: float | None
    latency_ms: float | None
    baseline_latency_ms: float | None
    failure: str

    def under(self, speedup: float | None, noise: float | None) -> Relative | None:
        """What a kernel with this speed-up over eager is over this baseline; None where either is not known."""
        if speedup is None or noise is None or self.speedup is None or self.noise is None:
            return None
        return relative.over(speedup, noise, self.speedup, self.noise)


def baseline(db: Database, run_id: str) -> BaselineRow | None:
    """The further baseline as last measured; None before the first kernel was timed and for runs of older engines."""
    sql = """SELECT name, speedup, speedup_low AS low, speedup_high AS high, noise, latency_ms, baseline_latency_ms,
        coalesce(failure, '') AS failure FROM baselines WHERE run_id = ? ORDER BY seq DESC LIMIT 1"""
    return fetch.one(db, BaselineRow, sql, [run_id])


@dataclass(frozen=True, slots=True)
class WorkloadRow:
    """What was measured of a kernel at one workload of its task; the kernel's own speed-up is the geometric mean."""

    number: int
    sizes: Mapping[str, object]
    speedup: float
    low: float
    high: float
    latency_ms: float
    baseline_latency_ms: float


def workloads(db: Database, run_id: str, candidate_id: str) -> list[WorkloadRow]:
    """Those of the timing that stands, in the task's order; none where the task has one workload alone."""
    sql = """SELECT w.number, w.sizes, w.speedup, w.speedup_low AS low, w.speedup_high AS high, w.latency_ms,
        w.baseline_latency_ms
    FROM workloads w JOIN timings t ON t.run_id = w.run_id AND t.candidate_id = w.candidate_id AND t.seq = w.seq
    WHERE w.run_id = $run AND w.candidate_id = $candidate ORDER BY w.number"""
    return fetch.rows(db, WorkloadRow, sql, {"run": run_id, "candidate": candidate_id})
