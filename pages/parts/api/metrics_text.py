"""Figures of this server and its runs in Prometheus' text format. Machine names only, no free text of a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from pages.parts import index, run_state
from storage import queries
from storage.records import RunState

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Sample = tuple[Mapping[str, str], float]


def text() -> str:
    """All figures as they are now."""
    return "".join([*_runs(), *_index(), *_spending()])


def metric(name: str, metric_type: str, about: str, samples: Iterable[Sample]) -> str:
    """One metric with its lines; `metric_type` is gauge or counter."""
    head = f"# HELP {name} {about}\n# TYPE {name} {metric_type}\n"
    return head + "".join(f"{name}{_labels(labels)} {_number(value)}\n" for labels, value in samples)


def _runs() -> Iterable[str]:
    db = index.current()
    unfinished = queries.unfinished_runs(db)
    alive = {name for name in unfinished if run_state.has_engine(name)}
    found = queries.state_counts(db, [name for name in unfinished if name not in alive])
    counts = dict.fromkeys(RunState, 0) | {row.state: row.runs for row in found}
    by_state = [({"state": str(state)}, count) for state, count in counts.items()]
    yield metric("tilewright_runs", "gauge", "Runs by state.", by_state)
    yield metric("tilewright_engines_alive", "gauge", "Engines at work on this machine.", [({}, len(alive))])
    best = queries.best_speedups(db, sorted(alive))
    yield metric(
        "tilewright_run_best_speedup", "gauge", "Best speed-up over the baseline of each run that has an engine.",
        [({"run": row.run_id, "task": row.task_name}, row.speedup) for row in best],
    )  # fmt: skip


def _index() -> Iterable[str]:
    lag, sums = index.ingest().lag(), queries.totals(index.current())
    yield metric("tilewright_ingest_lag_bytes", "gauge", "Bytes of run files not yet indexed.", [({}, lag.size)])
    about = "Seconds since the oldest file with bytes not yet indexed was written."
    yield metric("tilewright_ingest_lag_seconds", "gauge", about, [({}, lag.seconds)])
    is_stuck: list[Sample] = [({}, float(bool(index.ingest().failure)))]
    yield metric("tilewright_ingest_failing", "gauge", "1 while some run cannot be indexed.", is_stuck)
    yield metric("tilewright_events_total", "counter", "Journal events in the index.", [({}, sums.events)])
    yield metric("tilewright_problems", "gauge", "Lines of run files that could not be read.", [({}, sums.problems)])


def _spending() -> Iterable[str]:
    sums = queries.totals(index.current())
    tokens = [({"direction": "input"}, sums.input_tokens), ({"direction": "output"}, sums.output_tokens)]
    yield metric("tilewright_model_tokens_total", "counter", "Tokens of all model calls, where counted.", tokens)
    yield metric("tilewright_model_calls_total", "counter", "Model calls of all runs.", [({}, sums.model_calls)])
    yield metric(
        "tilewright_cost_usd_total", "counter", "US dollars of calls whose price is known.", [({}, sums.cost_usd)]
    )
    about = "Model calls whose cost is unknown."
    yield metric("tilewright_model_calls_unpriced_total", "counter", about, [({}, sums.unpriced_calls)])


def _labels(labels: Mapping[str, str]) -> str:
    escaped = {n: v.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for n, v in labels.items()}
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped.items()) + "}" if labels else ""


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return repr(float(value)) if math.isfinite(value) else "+Inf" if value > 0 else "-Inf"
