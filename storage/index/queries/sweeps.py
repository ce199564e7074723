"""Sweeps over the numbers that a kernel declares open to tuning, and their variants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from storage import codec
from storage.index.database import Database
from storage.index.queries import fetch
from storage.results.evaluation_results import TimingResult, headline
from storage.results.vocabulary import Verdict
from storage.run.events import SweepStarted, VariantChecked, VariantCompiled, VariantTimed


@dataclass(frozen=True, slots=True)
class SweepRow:
    """A sweep. `number` is that of the kernel as it was written, `speedup` its own, the better of its two timings;
    `kept_number` is that of the kernel which the sweep has made, None while there is none; `failed_again` what
    the kernel as it was written failed with when it was timed again."""

    candidate_id: str
    number: int
    tunables: str
    most: int
    speedup: float | None
    latency_ms: float | None
    kept_id: str | None
    kept_number: int | None
    kept_summary: str | None
    is_over: bool
    seconds: float
    failed_again: str | None = None


@dataclass(frozen=True, slots=True)
class VariantRow:
    """A variant. `is_full`: timed as any kernel is, else briefly, else not at all; `seconds` is all that it took."""

    number: int
    numbers: Mapping[str, object]
    verdict: Verdict
    message: str
    is_full: bool
    speedup: float | None
    low: float | None
    high: float | None
    latency_ms: float | None
    seconds: float


def _variants(db: Database, run_id: str, candidate_id: str) -> list[fetch.RunEntry[Any]]:
    return fetch.of_kernel(db, run_id, candidate_id, VariantCompiled, VariantChecked, VariantTimed)


def sweep(db: Database, run_id: str, candidate_id: str) -> SweepRow | None:
    """The sweep of a kernel, or the one that has made it."""
    sql = """WITH asked AS (SELECT CASE WHEN origin = 'tuned' THEN parent_id ELSE candidate_id END AS candidate_id
        FROM kernels WHERE run_id = $run AND candidate_id = $candidate)
    SELECT candidate_id, number, speedup, latency_ms FROM kernels JOIN asked USING (candidate_id) WHERE run_id = $run"""
    for name, number, speedup, latency_ms in fetch.tuples(db, sql, {"run": run_id, "candidate": candidate_id}):
        for entry in fetch.of_kernel(db, run_id, name, SweepStarted)[:1]:
            return _row(db, run_id, entry.event, number, speedup, latency_ms)
    return None


def _row(
    db: Database, run_id: str, started: SweepStarted, number: int, speedup: float | None, latency_ms: float | None
) -> SweepRow:
    name = started.candidate_id
    sql = """SELECT min(candidate_id), min(number), min(summary) FROM kernels
        WHERE run_id = ? AND origin = 'tuned' AND parent_id = ?"""
    kept_id, kept_number, kept_summary = fetch.tuples(db, sql, [run_id, name])[0]
    sql = "SELECT count(*) FROM steps WHERE run_id = ? AND step = ? AND ended_as IS NOT NULL"
    is_over = fetch.tuples(db, sql, [run_id, started.step])[0][0] > 0
    events = [entry.event for entry in _variants(db, run_id, name)]
    again = [event for event in events if event.number == 0]
    speedups = [event.result.speedup for event in again if isinstance(event, VariantTimed)]
    speedups += [] if speedup is None else [speedup]
    failed = [text for event in again if (text := _failure(event))]
    return SweepRow(
        name, number, codec.dumps(started.tunables), started.most, max(speedups, default=None), latency_ms, kept_id,
        kept_number, kept_summary, is_over, sum(event.result.seconds for event in events), max(failed, default=None),
    )  # fmt: skip


def _failure(event: VariantCompiled | VariantChecked | VariantTimed) -> str:
    result = event.result
    return "" if isinstance(result, TimingResult) or result.verdict is Verdict.PASSED else headline(result)


def variants(db: Database, run_id: str, candidate_id: str) -> list[VariantRow]:
    """The variants of the sweep of this kernel, the fastest first; those that failed last."""
    by_number: dict[int, list[Any]] = {}
    for entry in _variants(db, run_id, candidate_id):
        if entry.event.number > 0:
            by_number.setdefault(entry.event.number, []).append(entry.event)
    rows = [_variant(number, events) for number, events in by_number.items()]
    return sorted(rows, key=lambda row: (row.verdict is not Verdict.PASSED, -(row.speedup or 0.0), row.number))


def _variant(number: int, events: list[Any]) -> VariantRow:
    built = next((dict(event.values) for event in events if isinstance(event, VariantCompiled)), {})
    failed = next((event for event in reversed(events) if _failure(event)), None)
    timed = [event for event in events if isinstance(event, VariantTimed)]
    figures = timed[-1].result.figures if timed else None
    return VariantRow(
        number, built, failed.result.verdict if failed else Verdict.PASSED, _failure(failed) if failed else "",
        any(not event.is_brief for event in timed), figures.speedup if figures else None,
        figures.low if figures else None, figures.high if figures else None, figures.latency_ms if figures else None,
        sum(event.result.seconds for event in events),
    )  # fmt: skip
