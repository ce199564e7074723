"""The controls: each writes one command and leaves the rest to the engine."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from pages.parts import attendance_panel, index, roll_back, steer, steering_access, wording
from storage import queries
from storage.queries import RunRow
from storage.records import CommandKind, RunState, Switch

HELD = (RunState.PAUSED, RunState.WAITING)


def draw(run: RunRow, state: RunState) -> None:
    """The panel; says why when there is nothing to steer."""
    steer.give_word_back()
    with st.container(border=True, key="steering"):
        st.markdown("#### Steer")
        if not steering_access.is_allowed():
            st.caption(":material/lock: This server is read-only: it shows runs and takes no commands.")
            return
        if state.is_finished or state is RunState.LOST:
            over = "The run is finished." if state is RunState.FINISHED else "Resume it to steer it."
            st.caption(f"No engine works on this run. {over}")
            return
        _buttons(run, state)
        _switches(run)
        _hint(run)
        attendance_panel.draw(run)


def _buttons(run: RunRow, state: RunState) -> None:
    """Trap: under keys of their own, pause and resume would for a moment both be there and move everything below."""
    left, right = st.columns(2)
    with left:
        if state in HELD:
            _button(run, "Resume", CommandKind.RESUME, ":material/play_arrow:", "primary")
        else:
            _button(run, "Pause", CommandKind.PAUSE, ":material/pause:", "secondary")
    if right.button("Stop", icon=":material/stop:", key="stop", width="stretch"):
        confirm_stop(run)
    if st.button(
        "Roll back", icon=":material/undo:", key="roll_back", help="go on from an earlier kernel", width="stretch"
    ):
        roll_back.dialog(run)


def _button(run: RunRow, label: str, kind: CommandKind, icon: str, look: Literal["primary", "secondary"]) -> None:
    st.button(
        label, icon=icon, key="hold", type=look, width="stretch", on_click=steer.send, args=(run.run_id, kind)
    )  # fmt: skip


def _switches(run: RunRow) -> None:
    in_force = queries.switches(index.current(), run.run_id)
    rows = (
        (CommandKind.COLLECT, "Collect profiles", in_force.collect, "profile kernels, for you to see"),
        (CommandKind.EXPOSE, "Show them to the model", in_force.expose, "put a profile into the optimisation prompt"),
    )
    for kind, label, value, help_text in rows:
        key = f"{kind}:{run.run_id}"
        last = f"{key}:in_force"
        if st.session_state.get(last) != value:  # somebody, perhaps elsewhere, has changed it
            st.session_state[last] = value
            # Trap: writing a widget's value overrules a click that is on its way, so never write what it shows already.
            if st.session_state.get(key) != value:
                st.session_state[key] = value.value
        st.segmented_control(
            label, [s.value for s in Switch], key=key, required=True, help=help_text, width="stretch",
            on_change=_send_switch, args=(run.run_id, kind, key),
        )  # fmt: skip


def _hint(run: RunRow) -> None:
    with st.form("hint_form", border=False, clear_on_submit=True):
        st.text_area(
            "Hint for the next prompt", key="hint", height=68, max_chars=2000,
            placeholder="e.g. keep the tile of B in registers",
        )  # fmt: skip
        st.form_submit_button("Send hint", icon=":material/lightbulb:", on_click=_send_hint, args=(run.run_id,))
    waiting = queries.switches(index.current(), run.run_id).pending_hints
    if waiting:
        st.caption(f":material/schedule: waits for the next prompt: {wording.plain(waiting[-1][:120])}")


def _send_switch(run_id: str, kind: CommandKind, key: str) -> None:
    steer.send(run_id, kind, str(st.session_state[key]))


def _send_hint(run_id: str) -> None:
    text = str(st.session_state.hint).strip()
    if text:
        steer.send(run_id, CommandKind.HINT, text)


@st.dialog("Stop this run?", icon=":material/stop:")
def confirm_stop(run: RunRow) -> None:
    """Stopping ends the engine, so it asks once more."""
    st.markdown(
        "The engine drops the step in flight and ends. Everything done so far stays, and the run can be resumed."
    )
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button("Keep running", key="stop_no"):
            st.rerun()
        if st.button("Stop the run", type="primary", icon=":material/stop:", key="stop_yes"):
            steer.send(run.run_id, CommandKind.STOP)
            st.rerun()
