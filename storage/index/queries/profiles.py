"""Profiles of candidates, in long form and against the nearest profiled ancestor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from storage.index.database import Database
from storage.index.queries import fetch, runs
from storage.results import counters, observed, profile_results, relative
from storage.results.profile_results import DISTURBED, Advice, SourceLine, disturbance
from storage.results.vocabulary import KernelClass
from storage.run import exposure
from storage.run.events import Checked, Profiled, ProfileFailed
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
    kernel_hash: str = ""
    bound: str = ""
    summary: str = ""
    raw_blob: str | None = None
    report_blob: str | None = None
    sass_blob: str | None = None
    samples: int = 0
    seconds: float | None = None
    missing: list[str] = field(default_factory=list)
    ceilings: Mapping[str, float] = field(default_factory=dict)
    evidence: Mapping[str, str] = field(default_factory=dict)
    failure: str = ""

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
    `previous_kind` are what the operations mostly are of which it is a share of the peak (`tf32`); else empty.
    `is_within_noise`: it is the call's time, or follows from it alone, and the two timings show no difference."""

    launch: int
    kernel: str
    metric: str
    unit: str
    value: float
    previous: float | None
    previous_id: str | None
    kind: str = ""
    previous_kind: str = ""
    is_within_noise: bool = False

    @property
    def is_of_another_peak(self) -> bool:
        """Whether the two are shares of different peaks, so that neither is the better one."""
        return bool(self.kind and self.previous_kind) and self.kind != self.previous_kind

    @property
    def ratio(self) -> float | None:
        """value / previous; None when there is no previous value or it is zero."""
        return self.value / self.previous if self.previous else None


@dataclass(frozen=True, slots=True)
class CutRow:
    """A kernel whose profile holds only the first `profiled` launches of a call; of how many, as its check saw them, is
    None where that was not seen."""

    candidate_id: str
    number: int
    profiled: int
    launched: int | None


@dataclass(frozen=True, slots=True)
class UnshownRow:
    """A call whose prompt showed no profile of the earlier kernel that it was about, as there was none to show: what
    disturbed it, else why none could be had; both empty where none was asked for."""

    depth: int
    step: int
    candidate_id: str
    number: int
    disturbance: str
    failure: str


def executed_share(db: Database, run_id: str, candidate_id: str) -> float | None:
    """Operations that a kernel executed by those counted for its task, by its last profile; None where not known."""
    entry, hardware_limit = _profiled(db, run_id, candidate_id), runs.limit(db, run_id)
    if entry is None or hardware_limit is None:
        return None
    return profile_results.executed_share(entry.event.result, hardware_limit.min_flop)


def _profiled(db: Database, run_id: str, candidate_id: str) -> fetch.RunEntry[Profiled] | None:
    """A candidate's last profile."""
    return next(iter(fetch.of_kernel(db, run_id, candidate_id, Profiled)[-1:]), None)


def profile(db: Database, run_id: str, candidate_id: str) -> ProfileRow | None:
    """The last profile of a candidate, or the reason why there is none; None when nobody asked for one."""
    entry = _profiled(db, run_id, candidate_id)
    if entry is None:
        failed = fetch.of_kernel(db, run_id, candidate_id, ProfileFailed)[-1:]
        return next((ProfileRow(failure.seq, failure.at, failure.event.step, candidate_id, failure=failure.event.reason)
                     for failure in failed), None)  # fmt: skip
    event, result = entry.event, entry.event.result
    evidence = dict(result.evidence)
    if DISTURBED not in evidence:
        profiled_s, timed_s = _call_times(db, run_id, candidate_id)
        if why := _disturbance(None, profiled_s and 1e3 * profiled_s, timed_s and 1e3 * timed_s):
            evidence[DISTURBED] = why
    return ProfileRow(
        entry.seq, entry.at, event.step, candidate_id, result.kernel_hash, result.bound, result.summary, event.raw_blob,
        event.report_blob, event.sass_blob, result.samples, result.seconds, list(result.missing), result.ceilings,
        evidence,
    )  # fmt: skip


def cut_profiles(db: Database, run_id: str, candidate_ids: Sequence[str]) -> list[CutRow]:
    """Those of these kernels whose last profile holds only the first launches, in this order."""
    cut = {name: entry.event.result for name in candidate_ids if (entry := _profiled(db, run_id, name))}
    cut = {name: result for name, result in cut.items() if result.is_cut}
    if not cut:
        return []
    sql = "SELECT candidate_id, number FROM kernels WHERE run_id = ? AND candidate_id IN (SELECT unnest(?::VARCHAR[]))"
    numbers = dict(fetch.tuples(db, sql, [run_id, list(cut)]))
    rows = []
    for name, result in cut.items():
        checked = fetch.of_kernel(db, run_id, name, Checked)[-1:]
        launched = observed.launched(checked[0].event.result.evidence) if checked else None
        profiled = len({metric.launch for metric in result.metrics if metric.launch >= 0})
        rows.append(CutRow(name, numbers.get(name, 0), profiled, None if launched is None else round(launched)))
    return rows


def advice(db: Database, run_id: str, candidate_id: str) -> Sequence[Advice]:
    """The profiler's own word on each launch in a candidate's last profile, in its order."""
    entry = _profiled(db, run_id, candidate_id)
    return entry.event.result.advice if entry else ()


def source_lines(db: Database, run_id: str, candidate_id: str) -> list[SourceLine]:
    """The lines with samples of a candidate's last profile, most first."""
    entry = _profiled(db, run_id, candidate_id)
    return list(entry.event.result.lines) if entry else []


def metrics(db: Database, run_id: str, candidate_id: str) -> list[MetricRow]:
    """All values of a candidate's last profile, with the call's time and what follows from it as it was timed."""
    rows = _as_profiled(db, run_id, candidate_id)
    profiled_s, timed_s = _call_times(db, run_id, candidate_id)
    if not profiled_s or not timed_s:
        return rows
    factors = {"latency": timed_s / profiled_s} | dict.fromkeys(BY_LATENCY, profiled_s / timed_s)
    return [replace(row, value=row.value * factors.get(row.metric, 1.0)) for row in rows]


def _as_profiled(db: Database, run_id: str, candidate_id: str) -> list[MetricRow]:
    entry = _profiled(db, run_id, candidate_id)
    result = entry.event.result if entry else None
    by_launch = sorted(result.metrics if result else (), key=lambda metric: (metric.launch, metric.kernel, metric.name))
    return [
        MetricRow(candidate_id, result.kernel_hash if result else "", m.launch, m.kernel, m.name, m.unit, m.value)
        for m in by_launch
    ]


def _call_times(db: Database, run_id: str, candidate_id: str) -> tuple[float | None, float | None]:
    """Seconds of one call under the profiler and timed; None where it was not taken that way."""
    sql = "SELECT measured_ms / 1e3 FROM kernels WHERE run_id = ? AND candidate_id = ?"
    timed = fetch.tuples(db, sql, [run_id, candidate_id])
    rows = _as_profiled(db, run_id, candidate_id)
    profiled = next((row.value for row in rows if row.metric == "latency" and row.launch < 0), None)
    return profiled, timed[0][0] if timed else None


def metric_changes(db: Database, run_id: str, candidate_id: str, against: str | None = None) -> list[MetricChangeRow]:
    """All values of a candidate's last profile beside those of another kernel of the run, or of the nearest profiled
    one it descends from.

    A disturbed profile is compared with none, and none with one that holds only the first launches of a call: the first
    launches of two kernels do different parts of the work.
    """
    new = metrics(db, run_id, candidate_id)
    is_fit = bool(new) and not _is_disturbed(db, run_id, candidate_id)
    previous_id = (against or profiled_ancestor(db, run_id, candidate_id)) if is_fit else None
    if previous_id and cut_profiles(db, run_id, [candidate_id, previous_id]):
        previous_id = None
    old = metrics(db, run_id, previous_id) if previous_id else []
    there, here = _by_place(old), _by_place(new)
    kinds, none = (main_kind(new), main_kind(old)), ("", "")
    by_time = ("latency", *BY_LATENCY) if previous_id and _are_alike(db, run_id, (candidate_id, previous_id)) else ()
    return [
        MetricChangeRow(
            row.launch,
            row.kernel,
            row.metric,
            row.unit,
            row.value,
            value,
            previous_id if value is not None else None,
            *(kinds if row.metric in counters.BY_KIND else none),
            row.launch < 0 and row.metric in by_time,
        )
        for place, name, row in _named(new)
        for value in [_counterpart(name, here[place], there.get(place, {}))]
    ]


def _are_alike(db: Database, run_id: str, candidate_ids: tuple[str, str]) -> bool:
    """Whether two kernels have no measurable difference, where the time of a call in a profile is that of its timing:
    on a processor."""
    sql = "SELECT speedup, noise FROM kernels WHERE run_id = ? AND candidate_id IN (?, ?) AND speedup IS NOT NULL"
    sql += " ORDER BY number DESC"  # the newer over the older, as everywhere
    timed = fetch.tuples(db, sql, [run_id, *candidate_ids])
    if len(timed) < 2 or not all(all(_call_times(db, run_id, name)) for name in candidate_ids):
        return False
    (speedup, noise), (other, other_noise) = timed
    ratio = relative.between_sessions(speedup, noise or 0.0, other, other_noise or 0.0)
    return not (ratio.is_faster or ratio.is_slower)


def main_kind(rows: Sequence[MetricRow]) -> str:
    """What most operations of the profiled call are: `fp32`, `tf32` or `bf16`, for FP16 too, whose peak is the same;
    empty where they were not counted."""
    whole = {row.metric: row.value for row in rows if row.launch < 0 and not row.kernel}
    return counters.main_kind(counters.operations(whole))


_Place = tuple[int, str]
_Named = tuple[str, int]  # several functions may have one name: the first, the second, ... of it


def _named(rows: list[MetricRow]) -> Iterator[tuple[_Place, _Named, MetricRow]]:
    seen: Counter[tuple[_Place, str]] = Counter()
    for row in rows:
        place = row.launch, row.metric
        yield place, (row.kernel, seen[place, row.kernel]), row
        seen[place, row.kernel] += 1


def _by_place(rows: list[MetricRow]) -> dict[_Place, dict[_Named, MetricRow]]:
    """Values by launch and metric, then by kernel."""
    by_place: dict[_Place, dict[_Named, MetricRow]] = {}
    for place, name, row in _named(rows):
        by_place.setdefault(place, {})[name] = row
    return by_place


def _counterpart(name: _Named, here: Mapping[_Named, MetricRow], there: Mapping[_Named, MetricRow]) -> float | None:
    """The old value of the same kernel; of a renamed one only where a launch has a single kernel before and after."""
    if name in there:
        return there[name].value
    return next(iter(there.values())).value if len(there) == len(here) == 1 else None


def planned_exposure(db: Database, run_id: str, kernel_class: KernelClass) -> Exposure | None:
    """When a run of this class on auto shows its model profiles, by what it was started with; None for no such run."""
    stored = fetch.of_run(db, run_id, "asked_depths", "expose_from_depth", "profile_schedule", "version")
    return exposure.planned(kernel_class, *stored) if stored else None


def profiled_kernels(db: Database, run_id: str) -> list[str]:
    """Kernels that have a profile which nothing disturbed, in the order they were profiled."""
    sql = """SELECT candidate_id, disturbed, profiled_ms, measured_ms FROM kernels
        WHERE run_id = ? AND profiled_seq IS NOT NULL ORDER BY profiled_seq"""
    return [name for name, *figures in fetch.tuples(db, sql, [run_id]) if not _disturbance(*figures)]


def unshown(db: Database, run_id: str, depths: Sequence[int]) -> list[UnshownRow]:
    """Calls of these depths without a profile, about a kernel of an earlier depth that has none fit to be shown."""
    sql = """SELECT c.depth, c.step, b.candidate_id, b.number, b.profiled_seq IS NOT NULL,
        b.disturbed, b.profiled_ms, b.measured_ms
        FROM calls c JOIN kernels b ON b.run_id = c.run_id AND b.candidate_id = c.candidate_id
        WHERE c.run_id = $run AND NOT c.is_profile_exposed AND b.depth < c.depth
        AND c.depth IN (SELECT unnest($depths::BIGINT[])) ORDER BY c.seq"""
    rows = []
    for depth, step, name, number, is_profiled, *figures in fetch.tuples(db, sql, {"run": run_id, "depths": depths}):
        disturbed = _disturbance(*figures) if is_profiled else ""
        if disturbed or not is_profiled:
            failed = [] if is_profiled else fetch.of_kernel(db, run_id, name, ProfileFailed)
            rows.append(UnshownRow(depth, step, name, number, disturbed, failed[-1].event.reason if failed else ""))
    return rows


def _disturbance(noted: str | None, profiled_ms: float | None, timed_ms: float | None) -> str:
    """What disturbed a profile: as it was noted, or by its times."""
    if noted is not None:
        return noted
    return disturbance(profiled_ms, timed_ms) if profiled_ms and timed_ms else ""


def profiled_ancestor(db: Database, run_id: str, candidate_id: str) -> str | None:
    """The nearest kernel on the chain of parents that has a profile which nothing disturbed."""
    parents = dict(fetch.tuples(db, "SELECT candidate_id, parent_id FROM kernels WHERE run_id = ?", [run_id]))
    profiled = set(profiled_kernels(db, run_id))
    above = parents.get(candidate_id)
    for _ in parents:  # bounded, so that a journal written by hand with a circle in it cannot hold a page for ever
        if above is None or above in profiled:
            return above
        above = parents.get(above)
    return None


def _is_disturbed(db: Database, run_id: str, candidate_id: str) -> bool:
    row = profile(db, run_id, candidate_id)
    return row is not None and bool(row.disturbance)
