"""Stopping a run, and what to do when a stop takes too long: every state of it is shown, each further act asked for."""

from __future__ import annotations

import time

import streamlit as st

from engine import supervisor
from pages.parts import index, pulse, steer, wording
from storage import folder, queries
from storage.queries import CommandRow, RunRow
from storage.records import CommandKind, RunState

GRACE_S = 10.0


OPEN = "stop_is_asked"


def ask(run_id: str) -> None:
    """Have the question put."""
    st.session_state[OPEN] = run_id


def is_asked(run_id: str) -> bool:
    """Trap: a page drawn again without its open dialog forgets it, and its clicks are lost; so it is put each time."""
    return st.session_state.get(OPEN) == run_id


def _forget() -> None:
    st.session_state.pop(OPEN, None)


def _stop(run_id: str) -> None:
    _forget()
    steer.send(run_id, CommandKind.STOP)


@st.dialog("Stop this run?", icon=":material/stop:", on_dismiss=_forget)
def confirm(run: RunRow) -> None:
    """Stopping ends the engine, so it asks once more."""
    st.markdown(
        "The engine drops the step in flight and ends. Everything done so far stays, and the run can be resumed."
    )
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button("Keep running", key="stop_no", on_click=_forget):
            st.rerun()
        if st.button(
            "Stop the run", type="primary", icon=":material/stop:", key="stop_yes", on_click=_stop, args=(run.run_id,)
        ):
            st.rerun()


def draw(run: RunRow, state: RunState) -> None:
    """How far a stop that was asked for has come; nothing at all otherwise."""
    asked = [c for c in queries.commands(index.current(), run.run_id) if c.kind is CommandKind.STOP]
    if state.is_finished or state is RunState.LOST or not asked or asked[-1].refused_at is not None:
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
    if waited >= GRACE_S and st.button("End the engine now", icon=":material/dangerous:", key="end", width="stretch"):
        end(run)


@st.dialog("End the engine now?", icon=":material/dangerous:")
def end(run: RunRow) -> None:
    """Signals instead of words: first SIGTERM, then SIGKILL, to the engine and all it started."""
    st.markdown(
        "The engine has not stopped by itself. It is told to end at once (SIGTERM); if it has not after 5 seconds "
        "it is ended by force (SIGKILL). The step in flight is done again when the run is resumed; all else stays."
    )
    if not st.button("End it", type="primary", icon=":material/dangerous:", key="end_yes"):
        return
    with st.status("Ending the engine") as status:
        is_ended = supervisor.stop(folder.find_run(run.run_id), tell=st.write)
        word = "The engine has ended" if is_ended else "There was no engine to end"
        status.update(label=word, state="complete")
