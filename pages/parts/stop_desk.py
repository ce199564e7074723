"""Stopping a run, and what to do when a stop takes too long: every state of it is shown, each further act asked for."""

from __future__ import annotations

import time

import streamlit as st

from engine import supervisor
from pages.parts import dialogs, index, pulse, steer, wording
from pages.parts.dialogs import Dialog
from storage import folder, queries
from storage.queries import CommandRow, RunRow
from storage.records import CommandKind, RunState

GRACE_S = 10.0


@st.dialog("Stop this run?", icon=":material/stop:", on_dismiss=dialogs.close)
def confirm(run: RunRow) -> None:
    """Stopping ends the engine, so it asks once more."""
    st.markdown(
        "The engine drops the step in flight and ends. Everything done so far stays, and the run can be resumed."
    )
    if dialogs.buttons("stop", "Stop the run", ":material/stop:", cancel="Keep running"):
        steer.send(run.run_id, CommandKind.STOP)
        dialogs.leave()


def draw(run: RunRow, state: RunState) -> None:
    """How far a stop that was asked for has come; nothing at all otherwise."""
    asked = [c for c in queries.commands(index.current(), run.run_id) if c.kind is CommandKind.STOP]
    if state.is_over or not asked or asked[-1].refused_at is not None:
        return
    began = queries.engine_began(index.current(), run.run_id)
    if began is None or (asked[-1].acknowledged_at or asked[-1].asked_at) >= began:
        _watch(run, asked[-1])


@st.fragment(run_every=2.0)
def _watch(run: RunRow, stop: CommandRow) -> None:
    """Looks every two seconds, while a stop is on its way and only then."""
    if not pulse.has_engine(run.run_id):
        st.caption(":material/stop: The engine has ended.")
        return
    waited = time.time() - stop.asked_at
    reached = "taken up" if stop.acknowledged_at else "not read yet"
    st.caption(
        f":material/hourglass_top: Stop asked {wording.seconds(waited)} ago by {wording.plain(stop.asked_by)}, "
        f"{reached}. The step in flight is ending."
    )
    if waited >= GRACE_S and st.button(
        "End the engine now", icon=":material/dangerous:", key="end", width="stretch",
        on_click=dialogs.ask, args=(Dialog.END, run.run_id),
    ):  # fmt: skip
        st.rerun()


@st.dialog("End the engine now?", icon=":material/dangerous:", on_dismiss=dialogs.close)
def end(run: RunRow) -> None:
    """Signals instead of words: first SIGTERM, then SIGKILL, to the engine and all it started."""
    st.markdown(
        "The engine has not stopped by itself. It is told to end at once (SIGTERM); if it has not after 5 seconds "
        "it is ended by force (SIGKILL). The step in flight is done again when the run is resumed; all else stays."
    )
    st.button("End it", type="primary", icon=":material/dangerous:", key="end_yes", on_click=dialogs.confirm)
    if not dialogs.take_confirmed():
        return
    with st.status("Ending the engine") as status:
        is_ended = supervisor.stop(folder.find_run(run.run_id), tell=st.write)
        word = "The engine has ended" if is_ended else "There was no engine to end"
        status.update(label=word, state="complete")
    steer.say(word, ":material/dangerous:")
    dialogs.leave()
