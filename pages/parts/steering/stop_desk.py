"""Stopping a run, and what to do when a stop takes too long: every state of it is shown, each further act asked for."""

from __future__ import annotations

import streamlit as st

from engine import supervisor
from pages.parts import run_state, wording
from pages.parts.steering import dialogs, steer
from pages.parts.steering.dialogs import Dialog
from storage import folder
from storage.queries import RunRow
from storage.records import CommandKind, RunState


@st.dialog("Stop this run?", icon=":material/stop:", on_dismiss=dialogs.close)
def confirm(run: RunRow) -> None:
    """Stopping ends the engine, so it asks once more."""
    st.markdown(
        "The step in progress is cancelled and the engine ends. Completed steps are saved, and the run can be resumed."
    )
    if dialogs.buttons("stop", "Stop the run", ":material/stop:", cancel="Keep running"):
        steer.send(run.run_id, CommandKind.STOP)
        dialogs.leave()


def draw(run: RunRow, state: RunState) -> None:
    """How far a stop that was asked for has come; nothing at all otherwise."""
    stop = None if state.is_over else run_state.pending_stop(run.run_id)
    if stop is None:
        return
    reached = "the engine is ending" if stop.acknowledged_at else "the engine has not confirmed it yet"
    st.caption(
        f":material/hourglass_top: Stopping: requested at {wording.clock(stop.asked_at)} by "
        f"{wording.plain(stop.asked_by)}; {reached}."
    )
    if run_state.is_overdue(stop) and st.button(
        "Force stop", icon=":material/dangerous:", key=f"end:{run.run_id}", width="stretch",
        on_click=dialogs.ask, args=(Dialog.END, run.run_id),
    ):  # fmt: skip
        st.rerun()


@st.dialog("Force stop?", icon=":material/dangerous:", on_dismiss=dialogs.close)
def end(run: RunRow) -> None:
    """Signals instead of words: first SIGTERM, then SIGKILL, to the engine and all it started."""
    st.markdown(
        "The engine has not stopped by itself. It gets SIGTERM, and SIGKILL after 5 seconds. Completed steps are "
        "saved; the step in progress is repeated when the run is resumed."
    )
    st.button("Force stop", type="primary", icon=":material/dangerous:", key="end_yes", on_click=dialogs.confirm)
    if not dialogs.take_confirmed():
        return
    with st.status("Stopping the engine") as status:
        is_ended = supervisor.stop(folder.find_run(run.run_id), tell=st.write)
        word = "Engine stopped" if is_ended else "The engine had already ended"
        status.update(label=word, state="complete")
    steer.say(word)
    dialogs.leave()
