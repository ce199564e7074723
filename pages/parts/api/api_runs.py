"""Runs, their kernels and their events as plain data for machines. Knows the index and nothing of HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from engine.strategies import catalogue
from pages.parts import index, run_state
from pages.parts.api.api_answers import moment
from pages.parts.status import damaged
from storage import codec, damage, folder, queries
from storage.queries import AttemptRow, DepthRow, EventRow, RunFilter, RunRow, RunSort

SHOWN = 1000


def lost_runs() -> list[str]:
    """Runs that are not over and have no engine."""
    return run_state.lost(queries.unfinished_runs(index.current()))


def listed(chosen: RunFilter, sort: RunSort, limit: int, offset: int) -> tuple[list[dict[str, Any]], int]:
    """A page of runs and how many there are in all."""
    db = index.current()
    found = queries.listing(db, chosen, sort, lost_runs(), limit, offset)
    return [run(row) for row in queries.of_ids(db, found.run_ids)], found.total


def run(row: RunRow) -> dict[str, Any]:
    """One run in short. Times are ISO 8601, latencies milliseconds, costs US dollars, null is unknown."""
    best = None
    if row.best_candidate_id:
        best = {
            "kernel": row.best_candidate_id,
            "speedup": row.best_speedup,
            "interval_95": [row.best_low, row.best_high],
            "latency_ms": row.best_latency_ms,
        }
    state, found = run_state.of(row), damaged.of(row.run_id)
    crashed = damage.title(found) if found.is_cut else "the run crashed"
    return {
        "run": row.run_id, "task": row.task_name, "class": row.kernel_class, "toolchain": row.toolchain,
        "device": row.device or None, "model": row.model, "state": state,
        "reason": row.state_reason if state is row.state else crashed,
        "damage": damage.sentences(found) if found.is_damaged else [],
        "depth": row.depth, "depths": row.depths, "best": best,
        "created_at": moment(row.created_at), "started_at": moment(row.started_at), "ended_at": moment(row.ended_at),
        "last_event_at": moment(row.last_event_at), "engine_s": row.engine_s,
        "model_calls": row.model_calls, "tokens": row.tokens,
        "cost_usd": row.cost_usd, "kernels": row.attempts, "passed": row.passed, "failed": row.failed,
        "last_error": row.last_error or None, "is_demo": row.is_demo, "replay_of": row.replay_of,
        "has_recorded_replies": row.has_recorded_replies,
        "is_imported": row.is_imported, "href": f"/api/runs/{row.run_id}",
    }  # fmt: skip


def whole(row: RunRow) -> dict[str, Any]:
    """One run with settings, depths and kernels; of each the last thousand, with how many there are."""
    db = index.current()
    depths, kernels = queries.depths(db, row.run_id), queries.attempts(db, row.run_id)
    return run(row) | {
        "settings": settings(row.run_id),
        "depth_count": len(depths),
        "depth_list": [depth(one) for one in depths[-SHOWN:]],
        "kernel_count": len(kernels),
        "kernel_list": [kernel(row.run_id, one) for one in kernels[-SHOWN:]],
        "events": f"/api/runs/{row.run_id}/events",
    }


def settings(run_id: str) -> Mapping[str, Any] | None:
    """What run.json fixes, without addresses and places of this machine; None when it cannot be read."""
    try:
        fixed = folder.find_run(run_id).read_settings()
    except (FileNotFoundError, codec.DecodeError, UnicodeDecodeError):
        return None
    plain: dict[str, Any] = codec.to_plain(fixed)
    own = catalogue.defaults(fixed.strategy) | plain.pop("strategy_options")
    recording = plain.pop("recording", None)
    options = [
        {name: value for name, value in one.items() if name not in ("base_url", "key_variable")}
        for one in plain.pop("model_options", ())
    ]
    plain = own | plain  # beside the others, where they stood before strategies had options of their own
    return plain | {"model_options": options, "recording": recording and recording.replace("\\", "/").split("/")[-1]}


def depth(row: DepthRow) -> dict[str, Any]:
    """One depth; outcome null while it goes on."""
    return {
        "depth": row.depth, "outcome": row.outcome, "kernel": row.candidate_id, "base": row.base_id,
        "speedup": row.speedup, "interval_95": _pair(row.low, row.high), "best_speedup": row.best_speedup,
        "is_best": row.is_best, "is_profile_exposed": row.is_profile_exposed, "attempts": row.attempts,
        "failed": row.failed, "started_at": moment(row.started_at), "finished_at": moment(row.finished_at),
        "reason": row.reason,
    }  # fmt: skip


def kernel(run_id: str, row: AttemptRow) -> dict[str, Any]:
    """One kernel in short."""
    href = f"/api/runs/{run_id}/kernels/{row.candidate_id}"
    return {
        "kernel": row.candidate_id, "number": row.number, "parent": row.parent_id, "base": row.base_id,
        "depth": row.depth, "origin": row.origin, "verdict": row.verdict, "speedup": row.speedup,
        "interval_95": _pair(row.low, row.high), "latency_ms": row.latency_ms, "summary": row.summary,
        "message": row.message or None, "is_accepted": row.is_accepted, "is_best": row.is_best,
        "created_at": moment(row.created_at), "href": href, "source": f"{href}/source",
    }  # fmt: skip


def whole_kernel(run_id: str, candidate_id: str) -> dict[str, Any] | None:
    """One kernel with what building, checking and timing it gave; None when the run has none of that id."""
    db = index.current()
    row = queries.candidate(db, run_id, candidate_id)
    if row is None:
        return None
    judged = queries.evaluation(db, run_id, candidate_id)
    return kernel(run_id, row) | {
        "children": row.children,
        "source_sha256": row.source_blob,
        "evaluation": judged and _plain(judged, leave_out=("candidate_id", "log_blob", "low", "high")),
        "checks": [_plain(one) for one in queries.proofs(db, run_id, candidate_id)],
    }


def events(found: Iterable[EventRow]) -> list[dict[str, Any]]:
    """Journal lines as they were written."""
    return [json.loads(row.json) for row in found]


def _pair(low: float | None, high: float | None) -> list[float | None] | None:
    return None if low is None else [low, high]


def _plain(record: Any, leave_out: tuple[str, ...] = ()) -> dict[str, Any]:
    found: dict[str, Any] = codec.to_plain(record)
    return {name: value for name, value in found.items() if name not in leave_out}
