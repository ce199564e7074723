"""What routes for machines answer: runs, their kernels and their events as plain data, JSON with a version, figures in
Prometheus' text format. Errors say what to do; no path of this machine and no free text of a run in figures."""

from __future__ import annotations

import hashlib
import json
import math
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from prometheus_client import exposition
from prometheus_client.core import CounterMetricFamily as Counter
from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from engine import supervisor
from engine.search.methods import catalogue
from pages.parts import index, run_state
from pages.parts.server_memory import resident_bytes
from pages.parts.status import damaged
from storage import codec
from storage.home import home
from storage.index import queries
from storage.index.database import Database
from storage.index.queries import AttemptRow, BaselineRow, DepthRow, EventRow, PredictionRow, RunFilter, RunRow, RunSort
from storage.index.queries.call_outcomes import call_outcomes
from storage.knowledge import choice
from storage.run import damage, folder
from storage.run.settings import RunState

SHOWN = 1000


def lost_runs() -> list[str]:
    """Runs that are not over and have no engine."""
    return run_state.lost(queries.unfinished_runs(index.current()))


def listed(chosen: RunFilter, sort: RunSort, limit: int, offset: int) -> tuple[list[dict[str, Any]], int]:
    """A page of runs and how many there are in all."""
    db = index.current()
    listing = queries.listing(db, chosen, sort, lost_runs(), limit, offset, supervisor.SHOWN_FIRST)
    return [run(row) for row in queries.of_ids(db, listing.run_ids)], listing.total


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
    state, damages = run_state.shown_state(row), damaged.of(row.run_id)
    why_lost = damage.title(damages) if damages.is_cut else "the engine ended before the run did"
    return {
        "run": row.run_id, "name": row.label or None, "tags": row.tags, "note": row.note or None,
        "is_archived": row.is_archived, "task": row.task_name, "class": row.kernel_class, "language": row.language,
        "toolchain": row.toolchain,
        "device": row.device or None, "model": row.model, "state": state,
        "reason": why_lost if state is RunState.LOST else row.state_reason,
        "damage": damage.sentences(damages) if damages.is_damaged else [],
        "depth": max(row.completed - 1, 0), "depths": row.depths, "best": best,
        "created_at": moment(row.created_at), "started_at": moment(row.started_at), "ended_at": moment(row.ended_at),
        "last_event_at": moment(row.last_event_at), "engine_s": row.engine_s,
        "model_calls": row.model_calls, "tokens": row.tokens,
        "cost_usd": row.cost_usd, "kernels": row.attempts, "passed": row.passed, "failed": row.failed,
        "last_error": row.last_error or None, "is_demo": row.is_demo,
        "is_example": row.is_example, "replay_of": row.replay_of,
        "has_recorded_replies": row.has_recorded_replies,
        "is_imported": row.is_imported, "href": f"/api/runs/{row.run_id}",
    }  # fmt: skip


def whole(row: RunRow) -> dict[str, Any]:
    """One run with settings, depths and kernels; of each the last thousand, with how many there are."""
    db = index.current()
    depths, kernels = queries.depths(db, row.run_id), queries.attempts(db, row.run_id)
    return run(row) | {
        "settings": settings(row.run_id),
        "calls": [_plain(row) for row in call_outcomes(db, row.run_id)],
        "baselines": [baseline(measured) for measured in queries.baselines(db, row.run_id)],
        "depth_count": len(depths),
        "depth_list": [depth(step) for step in depths[-SHOWN:]],
        "kernel_count": len(kernels),
        "kernel_list": [kernel(row.run_id, attempt) for attempt in kernels[-SHOWN:]],
        "events": f"/api/runs/{row.run_id}/events",
    }


def baseline(row: BaselineRow) -> dict[str, Any]:
    """What one would run instead of a kernel, against eager PyTorch; figures null and `failure` told where it could
    not be timed."""
    return {
        "name": row.name, "speedup": row.speedup, "interval_95": _pair(row.low, row.high), "latency_ms": row.latency_ms,
        "eager_ms": row.baseline_latency_ms, "seconds": row.seconds, "failure": row.failure or None,
    }  # fmt: skip


def settings(run_id: str) -> Mapping[str, Any] | None:
    """What run.json fixes, without addresses and places of this machine; None when it cannot be read."""
    try:
        fixed = folder.find_run(run_id).read_settings()
    except (FileNotFoundError, codec.DecodeError, UnicodeDecodeError):
        return None
    plain: dict[str, Any] = codec.to_plain(fixed)
    defaults = catalogue.defaults(fixed.strategy) | plain.pop("strategy_options")
    recording = plain.pop("recording", None)
    options = [
        {name: value for name, value in option.items() if name not in ("base_url", "key_variable")}
        for option in plain.pop("model_options", ())
    ]
    saved = [
        {"name": entry.name, "kind": entry.kind, "model": entry.endpoint.model if entry.endpoint else None}
        for entry in fixed.saved_models
    ]
    plain.pop("saved_models")
    prompts = plain["prompts"] | {"folder": fixed.prompts.name, "files": list(fixed.prompts.files)}
    plain = (
        defaults | plain | {"prompts": prompts, "knowledge": choice.name_of(fixed.knowledge)}
    )  # beside the others, where they stood before strategies had options of their own
    plain |= {"saved_models": saved} if saved else {}
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
        "kernel": row.candidate_id, "number": row.number, "parent": row.parent_id,
        "second_parent": row.second_parent_id, "base": row.base_id, "depth": row.depth, "origin": row.origin,
        "verdict": row.verdict, "speedup": row.speedup,
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
        "prediction": _prediction(queries.prediction(db, run_id, candidate_id)),
        "checks": [_plain(record) for record in queries.check_records(db, run_id, candidate_id)],
        "deployment": codec.to_plain(queries.deployment(db, run_id, candidate_id)),
    }


def _prediction(row: PredictionRow | None) -> dict[str, Any] | None:
    """What the model expected of the change, as factors over the base kernel; measured null until it is."""
    if row is None:
        return None
    gain = row.measured
    measured = {"measured_gain": gain.speedup, "interval_95": [gain.low, gain.high]} if gain else None
    prediction = {"technique": row.technique or None, "predicted_gain": row.predicted, "kernel": row.candidate_id}
    return prediction | (measured or {"measured_gain": None, "interval_95": None})


def events(rows: Iterable[EventRow]) -> list[dict[str, Any]]:
    """Journal lines as they were written."""
    return [json.loads(row.json) for row in rows]


def _pair(low: float | None, high: float | None) -> list[float | None] | None:
    return None if low is None else [low, high]


def _plain(record: Any, leave_out: tuple[str, ...] = ()) -> dict[str, Any]:
    plain: dict[str, Any] = codec.to_plain(record)
    return {name: value for name, value in plain.items() if name not in leave_out}


LONGEST_PAGE = 1000
# The index counts versions from zero each time that a server starts.
_started = secrets.token_hex(4)


class ApiError(Exception):
    """A request that cannot be met: an HTTP status, what is wrong, and what to do about it."""

    def __init__(self, status: int, error: str, remedy: str) -> None:
        super().__init__(error)
        self.status, self.error, self.remedy = status, error, remedy

    def response(self) -> Response:
        """The error as JSON."""
        return _json({"error": self.error, "remedy": self.remedy}, self.status, {"Cache-Control": "no-store"})


def tag(request: Request, token: str) -> str:
    """The ETag of a request while the change token of what it shows is the same."""
    seen = f"{_started} {token} {request.url.path}?{request.url.query}"
    return f'"{hashlib.sha256(seen.encode()).hexdigest()[:24]}"'


def is_known(request: Request, etag: str) -> bool:
    """True when the asker has this version already."""
    return etag in [part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")]


def unchanged(etag: str) -> Response:
    """There is nothing new."""
    return Response(status_code=304, headers={"ETag": etag, "Cache-Control": "no-cache"})


def answer(body: dict[str, Any], etag: str) -> Response:
    """A result."""
    return _json(body, 200, {"ETag": etag, "Cache-Control": "no-cache"})


def number(request: Request, name: str, default: int, most: int | None = None) -> int:
    """A whole number of the query that is not negative.

    Raises:
        ApiError: it is no such number, or larger than allowed.
    """
    text = request.query_params.get(name, str(default))
    limit = 2**53 if most is None else most
    if not text.isascii() or not text.isdecimal() or len(text) > 16 or int(text) > limit:
        upto = "" if most is None else f" up to {most:,}"
        raise ApiError(400, f"{name}={text[:40]!r} cannot be used", f"{name} takes a whole number from 0{upto}")
    return int(text)


def moment(at: float | None) -> str | None:
    """Seconds since the epoch as ISO 8601 in UTC."""
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def without_paths(text: str) -> str:
    """The text with this machine's folders replaced by what they are."""
    for path, name in _places(str(home()), str(Path.home())):
        text = path.sub(name, text)
    return text


@cache
def _places(home: str, user: str) -> list[tuple[re.Pattern[str], str]]:
    """The longest first: one may lie in the other."""
    code = str(Path(__file__).resolve().parents[3])
    named = {home: "<home>", str(Path(home).resolve()): "<home>", code: "<code>", user: "<user>"}
    ordered = sorted((path for path in named if len(path) > 1), key=len, reverse=True)
    return [(re.compile(re.escape(path) + r"(?![\w.-])"), named[path]) for path in ordered]


def _json(body: dict[str, Any], status: int, headers: dict[str, str]) -> Response:
    text = without_paths(json.dumps(_finite(body), ensure_ascii=False, allow_nan=False, indent=1))
    return Response(text.encode("utf-8", "replace"), status, headers, "application/json")


def _finite(value: Any) -> Any:
    """JSON has no word for NaN and infinity, journals do: they are told as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, (list, tuple)) else value


MEDIA_TYPE = exposition.CONTENT_TYPE_PLAIN_0_0_4


def prometheus_text() -> bytes:
    """All figures as they are now."""
    return exposition.generate_latest(_Figures())


class _Figures(Collector):
    def collect(self) -> Iterator[Metric]:
        """Every metric with its samples; the exposition adds `_total` to the names of counters."""
        db = index.current()
        yield from _runs(db)
        lag, sums = index.ingest().lag(), queries.totals(db)
        yield Gauge("tilewright_ingest_lag_bytes", "Bytes of run files not yet indexed.", lag.size)
        about = "Seconds since the oldest file with bytes not yet indexed was written."
        yield Gauge("tilewright_ingest_lag_seconds", about, lag.seconds)
        yield Gauge("tilewright_ingest_failing", "1 while some run cannot be indexed.", bool(index.ingest().failure))
        yield Gauge("tilewright_server_memory_bytes", "Memory of the dashboard's server.", resident_bytes())
        yield Counter("tilewright_events", "Journal events in the index.", sums.events)
        yield Gauge("tilewright_problems", "Lines of run files that could not be read.", sums.problems)
        tokens = Counter("tilewright_model_tokens", "Tokens of all model calls, where counted.", labels=["direction"])
        tokens.add_metric(["input"], sums.input_tokens)
        tokens.add_metric(["output"], sums.output_tokens)
        yield tokens
        yield Counter("tilewright_model_calls", "Model calls of all runs.", sums.model_calls)
        yield Counter("tilewright_cost_usd", "US dollars of calls whose price is known.", sums.cost_usd)
        yield Counter("tilewright_model_calls_unpriced", "Model calls whose cost is unknown.", sums.unpriced_calls)


def _runs(db: Database) -> Iterator[Metric]:
    unfinished = queries.unfinished_runs(db)
    alive = {name for name in unfinished if run_state.has_engine(name)}
    counted = {row.state: row.runs for row in queries.state_counts(db, run_state.lost(unfinished))}
    runs = Gauge("tilewright_runs", "Runs by state.", labels=["state"])
    for state in RunState:
        runs.add_metric([state], counted.get(state, 0))
    yield runs
    yield Gauge("tilewright_engines_alive", "Engines at work on this machine.", len(alive))
    about = "Best speed-up over the baseline of each run that has an engine."
    best = Gauge("tilewright_run_best_speedup", about, labels=["run", "task"])
    for row in queries.best_speedups(db, sorted(alive)):
        best.add_metric([row.run_id, row.task_name], row.speedup)
    yield best
