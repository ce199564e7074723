"""What the runs of a suite have come to, read from the index. What no column holds, `storage.suites.measured` makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storage.index.database import Database
from storage.index.queries import compare, fetch
from storage.index.queries.runs import marks
from storage.index.queries.tries import tries
from storage.results.hardware_limit import HardwareLimit
from storage.run.events import CandidateCreated, Checked, Compiled, Profiled, ReviewWritten, Timed
from storage.run.journal import name_of
from storage.run.labels import Mark, MarkKind
from storage.run.record import Candidate, checks_of
from storage.run.steering.command_arguments import MANUAL
from storage.suites import measured
from storage.suites.results import BestKernel, RunResult, TimedKernel, Try

_CHOSEN = "(SELECT unnest($ids::VARCHAR[]))"
_KINDS = (CandidateCreated, Compiled, Checked, Timed, ReviewWritten, Profiled)
_Best = tuple[BestKernel | None, str]


@dataclass(frozen=True, slots=True)
class _HeadRow:
    run_id: str
    kernel_class: str
    model: str
    strategy: str
    hardware_limit: HardwareLimit | None
    model_calls: int


def run_results(db: Database, run_ids: Sequence[str]) -> dict[str, RunResult]:
    """The results of these runs by id, made anew of those alone that have news; those that are not in the index are
    left out."""
    versions = {run_id: db.run_version(run_id) for run_id in run_ids}
    return db.memory.of_runs(
        RunResult, versions, lambda news: _read(db, news), lambda result: len(result.timed) + len(result.tries)
    )


def models_called(db: Database, run_ids: Sequence[str]) -> set[str]:
    """Who wrote the replies of these runs, by name."""
    sql = f"SELECT DISTINCT model FROM calls WHERE run_id IN {_CHOSEN}"
    return {model for (model,) in fetch.tuples(db, sql, {"ids": list(run_ids)})}


def _read(db: Database, run_ids: Sequence[str]) -> dict[str, RunResult]:
    sql = f"""SELECT run_id, kernel_class, CASE WHEN run_id IN (SELECT run_id FROM calls WHERE model = $manual)
        THEN $manual ELSE model END AS model, strategy, hardware_limit, model_calls
        FROM runs WHERE run_id IN {_CHOSEN}"""
    heads = fetch.rows(db, _HeadRow, sql, {"ids": list(run_ids), "manual": MANUAL})
    bests, tried, found = _bests(db, run_ids), _tries(db, run_ids), marks(db, run_ids)
    timed: dict[str, list[TimedKernel]] = {}
    for at in compare.timed_kernels(db, run_ids):
        spent = at.depth, at.calls, at.engine_s, at.tokens, at.cost_usd, at.latency_ms, at.device_s
        kernel = TimedKernel(at.candidate_id, at.speedup, at.low, at.high, at.noise, *spent)
        timed.setdefault(at.run_id, []).append(kernel)
    conditions = {row.run_id: row for row in compare.conditions(db, run_ids)}
    return {
        head.run_id: RunResult(
            head.run_id, head.kernel_class, condition.language, condition.toolchain, head.model, head.strategy,
            condition.precision, condition.device, head.hardware_limit.known_ms if head.hardware_limit else None,
            condition.second_name, condition.second_speedup, best,
            tuple(timed.get(head.run_id, ())), tuple(tried.get(head.run_id, ())), head.model_calls,
            condition.engine_s, condition.tokens, condition.cost_usd,
            head.hardware_limit.bound_by if head.hardware_limit else "", bound, condition.device_s,
            _kind(found.get(head.run_id, {}), best),
        )
        for head in heads
        for best, bound in [bests.get(head.run_id, (None, ""))]
        if (condition := conditions.get(head.run_id))
    }  # fmt: skip


def _kind(found: Mapping[str, Mark], best: BestKernel | None) -> MarkKind | None:
    mark = found.get(best.candidate_id) if best else None
    return mark.kind if mark else None


def _tries(db: Database, run_ids: Sequence[str]) -> dict[str, list[Try]]:
    by_run: dict[str, list[tuple[bool, bool, str | None]]] = {}
    for row in tries(db, run_ids):
        by_run.setdefault(row.run_id, []).append((row.is_compiled, row.is_passed, row.prompt_blob))
    return {run_id: list(measured.alone(tried)) for run_id, tried in by_run.items()}


def _bests(db: Database, run_ids: Sequence[str]) -> Mapping[str, _Best]:
    """By run, its best kernel, made of all that happened to those of all runs: one query reads it."""
    sql = f"""SELECT run_id, candidate_id, parent_id, hardware_limit FROM kernels JOIN runs USING (run_id)
        WHERE run_id IN {_CHOSEN} AND is_best"""
    rows = fetch.tuples(db, sql, {"ids": list(run_ids)})
    which = """run_id IN (SELECT unnest($ids)) AND (run_id || ' ' || candidate_id IN (SELECT unnest($bests))
        OR (kind = $review AND run_id || ' ' || candidate_id IN (SELECT unnest($parents))))"""
    asked = {
        "ids": [run_id for run_id, *_ in rows], "bests": [f"{run_id} {name}" for run_id, name, *_ in rows],
        "parents": [f"{run_id} {parent}" for run_id, _, parent, _ in rows], "review": name_of(ReviewWritten),
    }  # fmt: skip
    happened: dict[str, list[Any]] = {}
    for entry in fetch.events(db, None, *_KINDS, where=which, parameters=asked) if rows else ():
        happened.setdefault(entry.run_id, []).append(entry.event)
    return {
        run_id: _best(name, happened.get(run_id, []), fetch.record(HardwareLimit, limit))
        for run_id, name, _, limit in rows
    }


def _best(name: str, events: Sequence[Any], limit: HardwareLimit | None) -> _Best:
    last = {type(event): event for event in events if event.candidate_id == name}
    if CandidateCreated not in last:
        return None, ""
    results = {kind: event.result for kind, event in last.items() if kind in (Compiled, Checked, Timed, Profiled)}
    timed = results.get(Timed)
    best = Candidate(
        last[CandidateCreated], results.get(Compiled), results.get(Checked), timed, timed.figures if timed else None,
        profiled=results.get(Profiled),
    )  # fmt: skip
    return measured.best_kernel(best, checks_of(events, best, limit)), measured.bound_of(best)
