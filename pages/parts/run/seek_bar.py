"""The time bar of a replay: its page shows the run as it stood after any step, told already or still to come."""

from __future__ import annotations

import streamlit as st

from pages.parts import client, index
from pages.parts.status import pinned_snapshot
from storage.index import past, queries
from storage.index.queries import RunRow
from storage.run.folder import run_at

KEY = "seek"
HELP = (
    "Drag to any step, or use the arrow keys: the page shows the run as it stood when that step had ended. "
    "The playback goes on meanwhile."
)

_bar = st.components.v2.component(
    "tilewright_seek_bar",
    html=f"""<div class="seek" title="{HELP}"><label><span>Replay: drag to any step</span>
    <input type="range" min="0" step="1" /></label><output></output></div>""",
    css=client.read("run/seek_bar.css"),
    js=client.read("run/seek_bar.js"),
)


def draw(run: RunRow) -> None:
    """Nothing for a run that is no replay, or has fewer than two steps to choose from."""
    last = len(past.course_of(run_at(run.run_id)).ends) if run.replay_of else 0
    if last < 2:
        return
    pinned = pinned_snapshot.of(run.run_id)
    sought = pinned.step if pinned else None
    step = min(last, queries.finished_steps(index.current(), run.run_id)) if sought is None else sought
    _bar(data={"step": step, "last": last}, key=KEY, on_step_change=lambda: _go(run.run_id))


def _go(run_id: str) -> None:
    step = st.session_state[KEY].step
    if step is not None:
        pinned_snapshot.seek(run_id, int(step))
