"""The handful of numbers that say how a run stands."""

from __future__ import annotations

import time

import streamlit as st

from pages.parts import client, index, speed_of_light, wording
from storage import queries
from storage.queries import RunRow
from storage.records import RunState

_figures = st.components.v2.component(
    "tilewright_figures",
    html='<dl class="figures"\n aria-label="Key figures"></dl>',
    css=client.read("key_figures.css"),
    js=client.read("key_figures.js"),
)


def draw(run: RunRow, state: RunState) -> None:
    """Best speed-up first and large, the rest as a grid."""
    judged = run.passed + run.failed
    best = {
        "label": "Best speed-up",
        "value": wording.speedup(run.best_speedup, _noise(run)),
        "second": _second(run),
        "note": _best_note(run),
        "tone": "good" if run.best_low and run.best_low > 1 else "",
    }
    others = [
        ("Depth", f"{run.depth if run.depth is not None else 0} / {run.depths}", ""),
        ("Kernels", wording.count(run.attempts), ""),
        ("Correct", f"{round(100 * run.passed / judged)} %" if judged else wording.NONE, f"{run.passed} of {judged}"),
        ("Model calls", wording.count(run.model_calls), ""),
        ("Tokens", wording.tokens(run.tokens), ""),
        ("Cost", wording.cost(run.cost_usd), ""),
    ]
    items = [best, *({"label": label, "value": value, "note": note} for label, value, note in others)]
    clock = {"since": run.started_at or run.created_at, "until": _until(run, state)}
    _figures(data={"items": items, "clock": clock, "server_now": time.time()}, key="figures")


def _noise(run: RunRow) -> float | None:
    if run.best_speedup is None or run.best_low is None or run.best_high is None:
        return None
    return (run.best_high - run.best_low) / 2 / run.best_speedup


def _second(run: RunRow) -> str:
    """The best kernel over the further baseline; empty where there is none."""
    baseline = queries.baseline(index.current(), run.run_id)
    found = baseline.under(run.best_speedup, _noise(run)) if baseline else None
    return wording.over(found, baseline.name) if found and baseline else ""


def _best_note(run: RunRow) -> str:
    if run.best_speedup is None:
        return "no correct kernel yet"
    limit = queries.limit(index.current(), run.run_id)
    reached = f" · {speed_of_light.percent(limit, run.best_latency_ms)} of the hardware limit" if limit else ""
    return f"{wording.plus_minus(_noise(run))} · {wording.latency(run.best_latency_ms)}{reached}"


def _until(run: RunRow, state: RunState) -> float | None:
    """When the clock stopped; None while it runs."""
    if state is RunState.LOST:
        return run.last_event_at
    return (run.ended_at or run.last_event_at) if state.is_finished else None
