"""How a run stands, readable from across the room: state, best speed-up, headroom, and the handful of other numbers."""

from __future__ import annotations

import time
from typing import Any

import streamlit as st

from pages.parts import client, index, speed_of_light, wording
from pages.parts.status import pinned_snapshot
from storage import queries
from storage.queries import RunRow
from storage.records import RunState

ABOVE = 1.02  # a kernel this far beyond the limit shows that the limit was measured too low
BEST = (
    "The fastest correct kernel of the run, abandoned branches included. Kernels that it does not beat by more than "
    "the noise are tied with it. Which kernel the next depth starts from is the base policy's choice, not this one's."
)
ENGINE_TIME = "Time spent in finished steps and the current one. Pauses and time without an engine are not counted."

_figures = st.components.v2.component(
    "tilewright_key_figures",
    html='<dl class="figures"\n aria-label="Key figures"></dl>',
    css=client.read("run/key_figures.css"),
    js=client.read("run/key_figures.js"),
)


def draw(run: RunRow, state: RunState) -> None:
    """State and best speed-up first and large, then the headroom, then the rest."""
    judged = run.passed + run.failed
    failed = wording.cut(run.last_error, 200) if run.last_error else ""
    others = [
        ("Kernels", wording.count(run.attempts), "", ""),
        (
            "Correct",
            f"{round(100 * run.passed / judged)} %" if judged else wording.NONE,
            f"{run.passed:,} of {judged:,}",
            f"last failure: {failed}" if failed else "",
        ),
        ("Model calls", wording.count(run.model_calls), "", ""),
        ("Tokens", wording.tokens(run.tokens), "", ""),
        ("Cost", wording.cost(run.cost_usd), "", ""),
    ]
    items = [{"label": label, "value": value, "note": note, "title": title} for label, value, note, title in others]
    note = f"started {wording.moment(run.started_at or run.created_at)}"
    clock = {"label": "Engine time", "title": ENGINE_TIME, "note": note, "spent_s": run.engine_s}
    clock |= _current(run, state)
    shown = {"state": _state(run, state), "best": _best(run), "headroom": headroom(run), "items": items, "clock": clock}
    _figures(data=shown | {"server_now": time.time()}, key="figures")


def _state(run: RunRow, state: RunState) -> dict[str, str]:
    return {
        "label": "State", "value": str(state), "tone": wording.STATE_TONE[state],
        "note": f"depth {run.depth if run.depth is not None else 0} of {run.depths}",
    }  # fmt: skip


def _best(run: RunRow) -> dict[str, str]:
    measured = f"{wording.plus_minus(run.best_noise)} · {wording.latency(run.best_latency_ms)}"
    nothing = "no correct kernel timed yet" if run.passed else "no correct kernel yet"
    return {
        "label": "Best speed-up over eager PyTorch",
        "value": wording.speedup(run.best_speedup, run.best_noise),
        "note": nothing if run.best_speedup is None else measured + (f" · {tied(run)}" if tied(run) else ""),
        "title": BEST if run.best_speedup else "",
        "second": _second(run),
        "tone": "good" if run.best_low and run.best_low > 1 else "",
    }


def tied(run: RunRow) -> str:
    """How many other kernels the best one does not beat beyond the noise; empty where there is none."""
    return f"tied with {wording.counted(run.tied_kernels, 'other kernel')}" if run.tied_kernels else ""


def headroom(run: RunRow) -> dict[str, Any]:
    """How much of the hardware's limit the best kernel has reached, and what is left."""
    limit = queries.limit(index.current(), run.run_id)
    share = speed_of_light.share(limit, run.best_latency_ms)
    label = "Hardware limit"
    if limit is None:
        return {"label": label, "value": wording.NONE, "note": "not measured yet", "share": None}
    sentence = speed_of_light.sentence(limit, run.best_latency_ms)
    if share is None:
        note = f"theoretical minimum {wording.latency(limit.limit_ms)}"
        return {"label": label, "value": wording.NONE, "note": note, "share": None, "title": sentence}
    left = f"{wording.significant(1 / share, 2)}× headroom" if share < 0.995 else "no headroom"
    if share > ABOVE:
        left = "faster than the measured limit"
    value = f"{speed_of_light.percent(limit, run.best_latency_ms)} of the limit"
    return {"label": label, "value": value, "note": left, "share": min(1.0, share), "title": sentence}


def _second(run: RunRow) -> str:
    """The best kernel over the further baseline; empty where there is none."""
    baseline = queries.baseline(index.current(), run.run_id)
    found = baseline.under(run.best_speedup, run.best_noise) if baseline else None
    return wording.over(found, baseline.name) if found and baseline else ""


def _current(run: RunRow, state: RunState) -> dict[str, float | None]:
    """When the step in flight began, and the moment of the snapshot that the page is pinned to."""
    pinned = pinned_snapshot.of(run.run_id)
    step = queries.current_step(index.current(), run.run_id) if state is RunState.RUNNING else None
    return {"since": step.started_at if step else None, "until": pinned.at if pinned else None}
