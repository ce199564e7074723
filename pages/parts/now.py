"""What the engine does this second, and the watcher that draws a page again when something is new."""

from __future__ import annotations

import time
from collections.abc import Sequence

import streamlit as st

from pages.parts import client, wording
from storage.queries import RunRow, StepRow
from storage.records import RunState

EVERY_MS = 500

_now = st.components.v2.component(
    "tilewright_now",
    html="""<div class="now" role="status" aria-label="What the engine is doing">
    <span class="text"></span><span class="clock"></span><span class="detail"></span>
    <ol class="pipeline" aria-label="Steps of the loop"></ol></div>""",
    css=client.read("now.css"),
    js=client.read("now.js"),
)


def watch(run_ids: Sequence[str], is_overview: bool, version: str) -> None:
    """Draw the enclosing fragment again when the version of these runs is no longer `version`; shows nothing."""
    _mount(run_ids, is_overview, version, {})


def draw(run: RunRow, state: RunState, step: StepRow | None, version: str) -> None:
    """The bar above the curve; also watches."""
    texts: dict[str, object] = {
        "text": _text(run, state, step),
        "detail": _detail(run, state, step),
        "tone": wording.STATE_TONE[state],
        "active": str(step.kind) if step and state is RunState.RUNNING else "",
        "since": step.started_at if step and state is RunState.RUNNING else None,
    }
    _mount([run.run_id], False, version, texts)


def _mount(run_ids: Sequence[str], is_overview: bool, version: str, texts: dict[str, object]) -> None:
    shown = {"text": "", "detail": "", "tone": "gray", "active": "", "since": None} | texts
    watched = {"runs": ",".join(run_ids), "overview": is_overview, "version": version, "every_ms": EVERY_MS}
    _now(data=shown | watched | {"server_now": time.time()}, key="now", on_pulse_change=lambda: None)


def _text(run: RunRow, state: RunState, step: StepRow | None) -> str:
    match state:
        case RunState.RUNNING:
            return step.text if step else "Between two steps"
        case RunState.STARTING:
            return "The engine is starting"
        case RunState.LOST:
            return "The engine is gone"
        case RunState.PAUSED:
            return "Paused"
        case RunState.WAITING:
            return "Waiting for a person"
        case _:
            return str(state).capitalize()


def _detail(run: RunRow, state: RunState, step: StepRow | None) -> str:
    match state:
        case RunState.RUNNING:
            return f"depth {step.depth} of {run.depths}" if step else ""
        case RunState.LOST:
            return "It ended without a last word. Resume to go on where the journal ends."
        case RunState.STARTING:
            return ""
        case _:
            return run.state_reason
