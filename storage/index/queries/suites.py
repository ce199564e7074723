"""What the runs of a suite have come to, as `engine.suites.measured` folds it from their journals: the same figures."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from storage.index.database import Database
from storage.index.queries import compare, evaluations, fetch
from storage.index.queries.tries import tries
from storage.results.check_records import LOOKED_AT, CheckOutcome
from storage.results.hardware_limit import HardwareLimit
from storage.run.events import CandidateCreated, Checked, Compiled, Profiled, ReviewWritten, Timed
from storage.suites.results import BestKernel, RunResult, TimedKernel, Try

_CHOSEN = "(SELECT unnest($runs::VARCHAR[]))"


@dataclass(frozen=True, slots=True)
class _HeadRow:
    run_id: str
    kernel_class: str
    model: str
    strategy: str
    hardware_limit: HardwareLimit | None
    model_calls: int


@dataclass(frozen=True, slots=True)
class _BestRow:
    run_id: str
    candidate_id: str
    written_id: str
    timed_seq: int
    source_blob: str
    low: float
    high: float
    noise: float
    speedup: float
    latency_ms: float
    baseline_latency_ms: float


def run_results(db: Database, run_ids: Sequence[str]) -> dict[str, RunResult]:
    """The results of these runs by id; those that are not in the index are left out."""
    chosen = {"runs": list(run_ids)}
    sql = f"""SELECT run_id, kernel_class, model, strategy, hardware_limit, model_calls FROM runs
        WHERE run_id IN {_CHOSEN}"""
    heads = fetch.rows(db, _HeadRow, sql, chosen)
    sql = f"""SELECT run_id, candidate_id, {evaluations.WRITTEN_AS} AS written_id, timed_seq, source_blob, low, high,
        noise, speedup, latency_ms, baseline_latency_ms FROM kernels WHERE run_id IN {_CHOSEN} AND is_best"""
    bests = {row.run_id: row for row in fetch.rows(db, _BestRow, sql, chosen)}
    entries, tried = _entries(db, bests.values()), _tries(db, run_ids)
    timed: dict[str, list[TimedKernel]] = {}
    for at in compare.timed_kernels(db, run_ids):
        spent = at.depth, at.calls, at.engine_s, at.tokens, at.cost_usd
        timed.setdefault(at.run_id, []).append(TimedKernel(at.candidate_id, at.speedup, at.noise, *spent))
    conditions = {row.run_id: row for row in compare.conditions(db, run_ids)}
    return {
        head.run_id: RunResult(
            head.run_id, head.kernel_class, condition.language, condition.toolchain, head.model, head.strategy,
            condition.precision, condition.device, head.hardware_limit.limit_ms if head.hardware_limit else None,
            condition.second_name, condition.second_speedup, _best(best, of_best),
            tuple(timed.get(head.run_id, ())), tuple(tried.get(head.run_id, ())), head.model_calls,
            condition.engine_s, condition.tokens, condition.cost_usd,
            head.hardware_limit.bound_by if head.hardware_limit else "", _bound(best, of_best),
        )
        for head in heads
        for best, of_best in [(bests.get(head.run_id), entries.get(head.run_id, []))]
        if (condition := conditions.get(head.run_id))
    }  # fmt: skip


def _tries(db: Database, run_ids: Sequence[str]) -> dict[str, list[Try]]:
    by_run: dict[str, list[Try]] = {}
    prompts: dict[str, str | None] = {}
    for row in tries(db, run_ids):
        first = prompts.setdefault(row.run_id, row.prompt_blob)
        is_alone = row.prompt_blob is not None and row.prompt_blob == first
        by_run.setdefault(row.run_id, []).append(Try(row.is_compiled, row.is_passed, is_alone))
    return by_run


_KINDS = (CandidateCreated, Compiled, Checked, Timed, ReviewWritten, Profiled)


def _entries(db: Database, bests: Iterable[_BestRow]) -> dict[str, list[fetch.RunEntry[Any]]]:
    """By run, what happened to its best kernel; of all runs by one query."""
    rows = list(bests)
    pairs = {f"{row.run_id} {name}" for row in rows for name in (row.candidate_id, row.written_id)}
    which = "run_id IN (SELECT unnest($runs)) AND run_id || ' ' || candidate_id IN (SELECT unnest($pairs))"
    asked = {"runs": [row.run_id for row in rows], "pairs": sorted(pairs)}
    by_run: dict[str, list[fetch.RunEntry[Any]]] = {}
    for entry in fetch.events(db, None, *_KINDS, where=which, parameters=asked) if rows else ():
        by_run.setdefault(entry.run_id, []).append(entry)
    return by_run


def _best(row: _BestRow | None, happened: Sequence[fetch.RunEntry[Any]]) -> BestKernel | None:
    if row is None:
        return None
    about_it = [entry for entry in happened if entry.event.candidate_id == row.candidate_id]
    timed = next((entry.event.result for entry in about_it if entry.seq == row.timed_seq), None)
    check = next((entry.event.result for entry in reversed(about_it) if isinstance(entry.event, Checked)), None)
    if timed is None:
        return None
    reviews = [
        entry
        for entry in happened
        if isinstance(entry.event, ReviewWritten) and entry.event.candidate_id == row.written_id
    ]
    stood = evaluations.stood([*(entry for entry in about_it if not isinstance(entry.event, ReviewWritten)), *reviews])
    outcomes: dict[str, list[CheckOutcome]] = {}
    for check_record in stood:
        outcomes.setdefault(check_record.check, []).append(check_record.standing)
    return BestKernel(
        row.candidate_id, row.source_blob, row.speedup, row.low, row.high, row.noise, row.latency_ms,
        row.baseline_latency_ms, statistics.fmean(timed.baseline_ms) / statistics.fmean(timed.candidate_ms),
        len(timed.candidate_ms), check.precision if check else "", check.max_error if check else None,
        check.max_abs_error if check else None, len(check.trials) if check else 0, check.seed if check else None,
        tuple(sorted({check_record.check for check_record in stood if check_record.standing in LOOKED_AT})),
        max(outcomes.get("other shapes", ()), default=None), max(outcomes.get("special values", ()), default=None),
    )  # fmt: skip


def _bound(row: _BestRow | None, happened: Sequence[fetch.RunEntry[Any]]) -> str:
    """By what its last profile says that the best kernel is bound."""
    profiles = [entry.event for entry in happened if isinstance(entry.event, Profiled)]
    about_it = [event for event in profiles if row is not None and event.candidate_id == row.candidate_id]
    return about_it[-1].result.bound if about_it else ""
