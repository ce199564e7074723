"""What building, checking and timing a candidate gave, the checks behind it, and the baselines of its run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any, TypeVar

from storage.index.database import Database
from storage.index.queries import fetch
from storage.results import evaluation_results, relative
from storage.results.check_records import StagedCheck
from storage.results.deployment import Deployment
from storage.results.hardware_limit import HardwareLimit
from storage.results.relative import Measured, Relative
from storage.results.timeline import Timeline
from storage.results.vocabulary import Verdict
from storage.run.events import (
    BaselineMeasured,
    CandidateCreated,
    Checked,
    Compiled,
    DeploymentSeen,
    Profiled,
    ReviewWritten,
    Timed,
)
from storage.run.record import STAGES, Candidate, checks_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """The last build, check and timing of one candidate; None where a stage has not been reached.

    Seconds are wall time of each stage. `diagnostics` is the compiler's text cut for reading, `log_blob` all of it.
    Errors are as `CheckResult` defines them. Speed-up and latencies are None unless the candidate stands as correct,
    and where a timing decides nothing, as `untrusted` says then.
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
    untrusted: str

    @property
    def made_trials(self) -> tuple[str, ...]:
        """Names of the trials that were made."""
        return evaluation_results.made(self.trials)

    @property
    def left_out(self) -> dict[str, str]:
        """Why each other trial was not made, by name."""
        return evaluation_results.left_out(self.trials)


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


Judged = Compiled | Checked | Timed


def _judged(db: Database, run_id: str, candidate_id: str) -> list[fetch.RunEntry[Judged]]:
    return fetch.of_kernel(db, run_id, candidate_id, Compiled, Checked, Timed)


def _last(judged: Iterable[fetch.RunEntry[Any]], kind: type[T]) -> T | None:
    return next((entry.event for entry in reversed([*judged]) if isinstance(entry.event, kind)), None)


def _standing(db: Database, run_id: str, candidate_id: str) -> Timed | None:
    """The last timing of a kernel that stands as correct."""
    sql = "SELECT timed_seq FROM kernels WHERE run_id = ? AND candidate_id = ?"
    seqs = [seq for (seq,) in fetch.tuples(db, sql, [run_id, candidate_id])]
    return _last((entry for entry in _judged(db, run_id, candidate_id) if entry.seq in seqs), Timed)


def evaluation(db: Database, run_id: str, candidate_id: str) -> EvaluationRow | None:
    """What is known about one candidate; None before its first build ended."""
    judged = _judged(db, run_id, candidate_id)
    if not judged:
        return None
    sql = "SELECT verdict FROM kernels WHERE run_id = ? AND candidate_id = ? AND verdict IS NOT NULL"
    verdict = next((Verdict(text) for (text,) in fetch.tuples(db, sql, [run_id, candidate_id])), None)
    compiled, checked = _last(judged, Compiled), _last(judged, Checked)
    built, check = compiled.result if compiled else None, checked.result if checked else None
    timed = _standing(db, run_id, candidate_id)
    measured = _last(judged, Timed)
    figures = timed.result.figures if timed else None
    return EvaluationRow(
        candidate_id=candidate_id,
        verdict=verdict,
        compile_ok=built.is_ok if built else None,
        compile_verdict=built.verdict if built else None,
        compile_seconds=built.seconds if built else None,
        compile_is_cached=built.is_cached if built else None,
        diagnostics=built.diagnostics if built else "",
        log_blob=compiled.log_blob if compiled else None,
        remarks=list(built.remarks) if built else [],
        check_verdict=check.verdict if check else None,
        check_seconds=check.seconds if check else None,
        max_error=check.max_error if check else None,
        max_abs_error=check.max_abs_error if check else None,
        tolerance=check.tolerance if check else None,
        reference_error=check.reference_error if check else None,
        trials=list(check.trials) if check else [],
        precision=check.precision if check else "",
        seed=check.seed if check else None,
        message=check.message if check else "",
        evidence=check.evidence if check else {},
        timing_seconds=timed.result.seconds if timed else None,
        timing_evidence=timed.result.evidence if timed else {},
        speedup=figures.speedup if figures else None,
        low=figures.low if figures else None,
        high=figures.high if figures else None,
        noise=figures.noise if figures else None,
        latency_ms=figures.latency_ms if figures else None,
        baseline_latency_ms=figures.baseline_latency_ms if figures else None,
        baseline=figures.baseline if figures else "",
        sample_count=len(timed.result.candidate_ms) if timed else 0,
        untrusted=measured.result.untrusted if measured and not timed else "",
    )


def timelines(db: Database, run_id: str, candidate_id: str) -> dict[str, Timeline]:
    """Where the time of each stage went, by its name in order; without those that were remembered or are older."""
    return {
        STAGES[type(entry.event)]: entry.event.result.timeline
        for entry in fetch.of_kernel(db, run_id, candidate_id, Compiled, Checked, Timed, Profiled)
        if entry.event.result.timeline is not None
    }


def deployment(db: Database, run_id: str, candidate_id: str) -> Deployment | None:
    """What is told of a kernel's deployment; None where nobody looked."""
    seen = _last(fetch.of_kernel(db, run_id, candidate_id, DeploymentSeen), DeploymentSeen)
    return seen.result if seen else None


def timing_samples(db: Database, run_id: str, candidate_id: str) -> TimingSamples | None:
    """Every pair of the last timing; None unless the candidate stands as correct and is timed."""
    timed = _standing(db, run_id, candidate_id)
    if timed is None:
        return None
    result = timed.result
    return TimingSamples(candidate_id, result.baseline, list(result.candidate_ms), list(result.baseline_ms))


def correctness_errors(db: Database, run_id: str, candidate_id: str) -> list[CorrectnessErrorRow]:
    """Failed checks of a candidate, newest first."""
    sql = "SELECT number FROM kernels WHERE run_id = ? AND candidate_id = ?"
    number = next((n for (n,) in fetch.tuples(db, sql, [run_id, candidate_id])), None)
    checked = fetch.of_kernel(db, run_id, candidate_id, Checked)
    return [_error(entry, number) for entry in reversed(checked) if entry.event.result.verdict is not Verdict.PASSED]


def _error(entry: fetch.RunEntry[Checked], number: int | None) -> CorrectnessErrorRow:
    result, wrong = entry.event.result, entry.event.result.mismatch
    return CorrectnessErrorRow(
        seq=entry.seq,
        at=entry.at,
        candidate_id=entry.event.candidate_id,
        number=number,
        verdict=result.verdict,
        trial=wrong.trial if wrong else "",
        first_index=list(wrong.index) if wrong else [],
        expected=wrong.expected if wrong else None,
        actual=wrong.actual if wrong else None,
        wrong_count=wrong.wrong_count if wrong else None,
        total_count=wrong.total_count if wrong else None,
        max_abs_error=wrong.max_abs_error if wrong else None,
        max_rel_error=wrong.max_rel_error if wrong else None,
        shape=list(wrong.shape) if wrong else [],
        heat=[list(row) for row in wrong.heat] if wrong else [],
        message=result.message,
    )


@dataclass(frozen=True, slots=True)
class OutcomeCount:
    """How many checks of one candidate a person should look at, and how many led to a refusal."""

    candidate_id: str
    looks: int
    broken: int


def check_records(db: Database, run_id: str, candidate_id: str) -> list[StagedCheck]:
    """One per check, by group, the worst first. A check made in several stages shows where it stood worst."""
    happened = fetch.of_kernel(db, run_id, candidate_id, CandidateCreated, Compiled, Checked, Timed)
    created = _last(happened, CandidateCreated)
    if created is None:
        return []
    kernel = Candidate(created)
    reviews = fetch.of_kernel(db, run_id, kernel.written_as, ReviewWritten)
    events = [entry.event for entry in sorted([*happened, *reviews], key=attrgetter("seq"))]
    stored = fetch.of_run(db, run_id, "hardware_limit")
    return checks_of(events, kernel, fetch.record(HardwareLimit, stored[0]) if stored else None)


def outcome_counts(db: Database, run_id: str, candidate_ids: Sequence[str] | None = None) -> dict[str, OutcomeCount]:
    """By candidate, of all or of those named; those with nothing to look at are left out."""
    sql = """SELECT candidate_id, looks, broken FROM kernels WHERE run_id = $run AND looks + broken > 0
        AND ($all OR list_contains($candidates::VARCHAR[], candidate_id)) ORDER BY candidate_id"""
    asked = {"run": run_id, "all": candidate_ids is None, "candidates": list(candidate_ids or ())}
    return {row.candidate_id: row for row in fetch.rows(db, OutcomeCount, sql, asked)}


@dataclass(frozen=True, slots=True)
class BaselineRow:
    """A further baseline against eager: `speedup` is eager latency over its own, with its 95 % interval low..high.

    `noise` is `TimingResult.noise`. Latencies are medians of one session, in milliseconds. All are None
    when it could not be had; `failure` says why and is empty otherwise. `seconds`: what compiling and timing it took,
    None where nobody noted it and in the answers of `baseline` and `fastest_baselines`.
    """

    name: str
    speedup: float | None
    low: float | None
    high: float | None
    noise: float | None
    latency_ms: float | None
    baseline_latency_ms: float | None
    failure: str
    seconds: float | None = None
    is_on_gpu: bool = False

    @property
    def eager_ms(self) -> float | None:
        """Eager's latency in the session of this timing."""
        return relative.baseline_ms(self.speedup, self.latency_ms)

    def beside(self, eager_ms: float | None) -> BaselineRow:
        """The same as it counts beside a kernel beside which eager took `eager_ms`."""
        factor = relative.held_up(eager_ms, self.eager_ms) if self.is_on_gpu else 1.0
        speedup, low, high = (value and value * factor for value in (self.speedup, self.low, self.high))
        return replace(self, speedup=speedup, low=low, high=high)

    def under(self, kernel: Measured | None) -> Relative | None:
        """What a kernel with this speed-up over eager is over this baseline; None where either is not known."""
        this = relative.measured(self.speedup, self.low, self.high, self.noise)
        return relative.over(kernel, this) if kernel and this else None


_SECOND = [f"second_{field.name}" for field in fields(BaselineRow) if field.name not in ("seconds", "is_on_gpu")]


def baseline(db: Database, run_id: str) -> BaselineRow | None:
    """The fastest baseline beside eager, as it counts beside the best kernel; None before the first kernel was timed
    and for runs of older engines."""
    stored = fetch.of_run(db, run_id, *_SECOND)
    return BaselineRow(*stored) if stored and stored[0] is not None else None


def fastest_baselines(db: Database, run_ids: Sequence[str]) -> dict[str, BaselineRow]:
    """The same of each of these runs that has timed one, or tried to."""
    sql = f"""SELECT run_id, {", ".join(_SECOND)} FROM runs
        WHERE list_contains($runs::VARCHAR[], run_id) AND second_name IS NOT NULL ORDER BY run_id"""
    return {run_id: BaselineRow(*values) for run_id, *values in fetch.tuples(db, sql, {"runs": list(run_ids)})}


@dataclass(frozen=True, slots=True)
class ElsewhereRow:
    """The fastest baseline of another run, `run_id`: timed in sessions of its own, so it is in no figure that is added
    up. `is_origin`: the run was forked from that one."""

    run_id: str
    is_origin: bool
    baseline: BaselineRow


def baselines_elsewhere(db: Database, run_ids: Sequence[str]) -> dict[str, ElsewhereRow]:
    """For each of these runs that tried no baseline beside eager: that of the run it was forked from, else of the
    newest other one. Only where task, sizes, arithmetic and model of device are the same."""
    names = ", ".join(f"o.{name}" for name in _SECOND)
    sql = f"""SELECT r.run_id, o.run_id, o.run_id IS NOT DISTINCT FROM r.forked_run AS is_origin, {names}
        FROM runs r JOIN runs o ON o.task_name = r.task_name AND o.sizes = r.sizes AND o.precision = r.precision
            AND o.toolchain = r.toolchain AND o.device_model = r.device_model AND o.run_id <> r.run_id
        WHERE list_contains($runs::VARCHAR[], r.run_id) AND r.device_model <> '' AND r.second_name IS NULL
            AND o.second_speedup IS NOT NULL AND o.replay_of IS NULL
        QUALIFY row_number() OVER (PARTITION BY r.run_id ORDER BY is_origin DESC, o.created_at DESC, o.run_id) = 1
        ORDER BY r.run_id"""
    found = fetch.tuples(db, sql, {"runs": list(run_ids)})
    return {run_id: ElsewhereRow(other, is_origin, BaselineRow(*row)) for run_id, other, is_origin, *row in found}


def baselines(db: Database, run_id: str) -> list[BaselineRow]:
    """Every baseline beside eager as last measured, in the order in which they were first measured."""
    last = {entry.event.name: entry.event for entry in fetch.events(db, run_id, BaselineMeasured)}
    toolchain = fetch.of_run(db, run_id, "toolchain")
    return [_baseline(measured, toolchain != ("cpu",)) for measured in last.values()]


def baseline_beside(db: Database, run_id: str, eager_ms: float | None) -> BaselineRow | None:
    """The fastest of them as it counts beside a kernel whose session's eager took `eager_ms`; where none was timed, the
    first."""
    rows = [row.beside(eager_ms) for row in baselines(db, run_id)]
    return max(rows, key=lambda row: row.speedup or 0.0, default=None)


def _baseline(measured: BaselineMeasured, is_on_gpu: bool) -> BaselineRow:
    timed = measured.result
    if timed is None:
        return BaselineRow(measured.name, None, None, None, None, None, None, measured.failure)
    figures, took = timed.figures, timed.timeline.total_s if timed.timeline else None
    return BaselineRow(
        measured.name, figures.speedup, figures.low, figures.high, figures.noise, figures.latency_ms,
        figures.baseline_latency_ms, measured.failure, took, is_on_gpu,
    )  # fmt: skip


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
    """The workloads of the timing that stands, in the task's order; none where the task has one alone."""
    timed = _standing(db, run_id, candidate_id)
    return [
        WorkloadRow(number, workload.sizes, f.speedup, f.low, f.high, f.latency_ms, f.baseline_latency_ms)
        for number, workload in enumerate(timed.result.workloads if timed else ())
        for f in [workload.timing.figures]
    ]
