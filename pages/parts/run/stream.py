"""The reply streaming in while the model writes: its last line at once, all of it on demand."""

from __future__ import annotations

import streamlit as st

from pages.parts import client
from storage.queries import RunRow, StepRow
from storage.records import RunState, StepKind

WRITING = (StepKind.SYNTHESISE, StepKind.OPTIMISE, StepKind.DIAGNOSE, StepKind.REPAIR)

_stream = st.components.v2.component(
    "tilewright_stream",
    html='<div class="stream"><span class="title"></span>\n<pre tabindex="0" aria-label="Reply being written"></pre>'
    '<button aria-expanded="false">whole reply</button></div>',
    css=client.read("stream.css"),
    js=client.read("stream.js"),
)


def draw(run: RunRow, state: RunState, step: StepRow | None) -> None:
    """A line that follows the reply and unfolds; gone once the run is over."""
    if state.is_over:
        return
    is_writing = state is RunState.RUNNING and step is not None and step.kind in WRITING
    texts = {
        "run": run.run_id,
        "step": step.step if step and is_writing else 0,
        "is_writing": is_writing,
        "idle": "The model is not writing now. Past replies: see each kernel.",
    }
    _stream(data=texts, key="stream")
