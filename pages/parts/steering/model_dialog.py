"""Another model for all next calls, or for one step of the model that is done again."""

from __future__ import annotations

import streamlit as st

from engine import supervisor
from pages.parts import index, wording
from pages.parts.steering import dialogs, model_choice, steer
from storage import queries
from storage.attendance import MANUAL, WRITING
from storage.choices import Retry
from storage.queries import OrdersRow, RunRow, StepRow
from storage.records import CommandKind

NEXT, AGAIN = "all further calls", "redo one step"
STEPS = 60


@st.dialog("Model", width="large", icon=":material/smart_toy:", on_dismiss=dialogs.close)
def dialog(run: RunRow, orders: OrdersRow) -> None:
    """Choose the model, see what follows, confirm."""
    now = orders.model or run.model
    st.caption(f"Current model: {wording.plain(now)}")
    how = st.segmented_control("Use another model for", [NEXT, AGAIN], default=NEXT, key="model_how", required=True)
    known = [name for name in supervisor.available_models() if how == NEXT or name != MANUAL]
    model = model_choice.draw(model_choice.container(), "Model", "model_name", known, now)
    options = st.text_input(
        "Options", key="model_options_line", placeholder="e.g. reasoning_effort=high temperature=0.2"
    )
    step = _step(run) if how == AGAIN else None
    text = " ".join(f"{model} {options}".split()) + (f" step={step.step}" if step else "")
    if problem := _problem(text):
        st.error(wording.plain(problem), icon=":material/error:")
        dialogs.take_confirmed()
        return
    if how == AGAIN and step is None:
        st.info("No model has been called yet, so there is no step to redo.", icon=":material/hourglass_top:")
        dialogs.take_confirmed()
        return
    st.info(preview(model, step), icon=":material/visibility:")
    label = f"Redo step {step.step}" if step else "Change the model"
    kind = CommandKind.RETRY if step else CommandKind.SET_MODEL
    if dialogs.buttons("model", label, ":material/smart_toy:"):
        steer.send(run.run_id, kind, text)
        dialogs.leave()


def preview(model: str, step: StepRow | None) -> str:
    """What will happen, and what is lost."""
    name = wording.plain(model)
    if step is None:
        return f"{name} gets all further calls, until you change it again. A reply being written is still used."
    return (
        f"{name} redoes step {step.step} ({step.kind}, depth {step.depth}), this once. A reply being written is "
        "cancelled; if the step belongs to an earlier depth, the current depth is abandoned. All kernels and replies "
        "stay in the run."
    )


def _step(run: RunRow) -> StepRow | None:
    steps = dialogs.hold("steps", lambda: queries.steps(index.current(), run.run_id, limit=4 * STEPS))
    found = [s for s in steps if s.kind in WRITING][:STEPS]
    if not found:
        return None
    return st.selectbox(
        "Step to redo, newest first", found, key="model_step",
        format_func=lambda s: f"step {s.step} · depth {s.depth} · {s.text[:70]}",
    )  # fmt: skip


def _problem(text: str) -> str:
    try:
        Retry.parse(text)
    except ValueError as error:
        return str(error)
    return ""
