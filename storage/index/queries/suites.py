"""What the runs of a suite have come to, as `engine.suites.measured` folds it from their journals: the same figures."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from storage.index.database import Database
from storage.index.queries import compare, evaluations, fetch
from storage.index.queries.tries import tries
from storage.results.check_records import LOOKED_AT, CheckOutcome
from storage.results.hardware_limit import HardwareLimit
from storage.run.events import Checked, Profiled
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
    sql = f"""SELECT run_id, candidate_id, source_blob, low, high, noise, speedup, latency_ms, baseline_latency_ms
        FROM kernels WHERE run_id IN {_CHOSEN} AND is_best"""
    bests = {row.run_id: row for row in fetch.rows(db, _BestRow, sql, chosen)}
    tried = _tries(db, run_ids)
    timed: dict[str, list[TimedKernel]] = {}
    for at in compare.timed_kernels(db, run_ids):
        spent = at.depth, at.calls, at.engine_s, at.tokens, at.cost_usd
        timed.setdefault(at.run_id, []).append(TimedKernel(at.candidate_id, at.speedup, at.noise, *spent))
    known = {row.run_id: row for row in compare.conditions(db, run_ids)}
    return {
        head.run_id: RunResult(
            head.run_id, head.kernel_class, one.language, one.toolchain, head.model, head.strategy, one.precision,
            one.device, head.hardware_limit.limit_ms if head.hardware_limit else None, one.second_name,
            one.second_speedup, _best(db, bests.get(head.run_id)), tuple(timed.get(head.run_id, ())),
            tuple(tried.get(head.run_id, ())), head.model_calls, one.engine_s, one.tokens, one.cost_usd,
            head.hardware_limit.bound_by if head.hardware_limit else "", _bound(db, bests.get(head.run_id)),
        )
        for head in heads
        if (one := known.get(head.run_id))
    }  # fmt: skip


def _tries(db: Database, run_ids: Sequence[str]) -> dict[str, list[Try]]:
    found: dict[str, list[Try]] = {}
    prompts: dict[str, str | None] = {}
    for row in tries(db, run_ids):
        first = prompts.setdefault(row.run_id, row.prompt_blob)
        is_alone = row.prompt_blob is not None and row.prompt_blob == first
        found.setdefault(row.run_id, []).append(Try(row.is_compiled, row.is_passed, is_alone))
    return found


def _best(db: Database, row: _BestRow | None) -> BestKernel | None:
    checks = fetch.of_kernel(db, row.run_id, row.candidate_id, Checked)[-1:] if row else []
    pairs = evaluations.timing_samples(db, row.run_id, row.candidate_id) if row else None
    if row is None or pairs is None:
        return None
    check = checks[0].event.result if checks else None
    stood = evaluations.check_records(db, row.run_id, row.candidate_id)
    outcomes: dict[str, list[CheckOutcome]] = {}
    for one in stood:
        outcomes.setdefault(one.check, []).append(one.standing)
    return BestKernel(
        row.candidate_id, row.source_blob, row.speedup, row.low, row.high, row.noise, row.latency_ms,
        row.baseline_latency_ms, statistics.fmean(pairs.baseline_ms) / statistics.fmean(pairs.candidate_ms),
        len(pairs.candidate_ms), check.precision if check else "", check.max_error if check else None,
        check.max_abs_error if check else None, len(check.trials) if check else 0, check.seed if check else None,
        tuple(sorted({one.check for one in stood if one.standing in LOOKED_AT})),
        max(outcomes.get("other shapes", ()), default=None), max(outcomes.get("special values", ()), default=None),
    )  # fmt: skip


def _bound(db: Database, row: _BestRow | None) -> str:
    profiled = fetch.of_kernel(db, row.run_id, row.candidate_id, Profiled)[-1:] if row else []
    return profiled[0].event.result.bound if profiled else ""
