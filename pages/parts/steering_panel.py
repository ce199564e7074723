"""The controls: each writes one command and leaves the rest to the engine."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from pages.parts import (
    attendance_panel,
    auto_words,
    base_dialog,
    dialogs,
    index,
    rules_panel,
    steer,
    steering_access,
    stop_desk,
    wording,
)
from pages.parts.dialogs import Dialog
from storage import exposure, queries
from storage.queries import RunRow
from storage.records import CommandKind, RunState, Switch

HELD = (RunState.PAUSED, RunState.WAITING)


def draw(run: RunRow, state: RunState) -> None:
    """The panel; says why when there is nothing to steer."""
    with st.container(border=True, key="steering"):
        st.markdown("## Steer")
        if not steering_access.is_allowed():
            st.caption(":material/lock: This server is read-only: it shows runs and takes no commands.")
            return
        if state.is_over:
            over = "The run is finished." if state is RunState.FINISHED else "Resume it to steer it."
            st.caption(f"No engine works on this run. {over}")
            if not run.replay_of:
                _go_on(run)
            return
        orders = queries.orders(index.current(), run.run_id)
        _buttons(run, state)
        with st.container():  # always there: what comes and goes in it must not move what follows
            stop_desk.draw(run, state)
        if run.replay_of:
            st.caption("A replay can be paused and stopped; everything else is for the run itself.")
            return
        _go_on(run)
        _others(run)
        with st.container():
            base_dialog.in_force(run, orders)
            if orders.model:
                st.caption(
                    f":material/smart_toy: asked instead of {wording.plain(run.model)}: {wording.plain(orders.model)}"
                )
        _switches(run)
        _hint(run)
        rules_panel.draw(run, orders)
        attendance_panel.draw(run)


def _buttons(run: RunRow, state: RunState) -> None:
    """Trap: under keys of their own, pause and resume would for a moment both be there and move everything below."""
    left, right = st.columns(2)
    with left:
        if state in HELD:
            _button(run, "Resume", CommandKind.RESUME, ":material/play_arrow:", "primary")
        else:
            _button(run, "Pause", CommandKind.PAUSE, ":material/pause:", "secondary")
    with right:
        _opens(run, Dialog.STOP, "Stop", ":material/stop:")


def _button(run: RunRow, label: str, kind: CommandKind, icon: str, look: Literal["primary", "secondary"]) -> None:
    st.button(
        label, icon=icon, key="hold", type=look, width="stretch", shortcut="p", on_click=steer.send,
        args=(run.run_id, kind),
    )  # fmt: skip


def _opens(run: RunRow, dialog: Dialog, label: str, icon: str, hint: str | None = None, key: str | None = None) -> None:
    """A button for a dialog; `key` is the key of the keyboard that presses it."""
    st.button(
        label, icon=icon, key=f"opens_{dialog}", width="stretch", help=hint, shortcut=key, on_click=dialogs.ask,
        args=(dialog, run.run_id),
    )  # fmt: skip


def _go_on(run: RunRow) -> None:
    """What can be done with the kernels of a run whether or not an engine works on it."""
    told = "go on from an earlier kernel, in this run or as a new one, with or without profiling"
    _opens(run, Dialog.TRY_AGAIN, "Go back or fork", ":material/undo:", told)
    if st.button("Edit a kernel by hand", icon=":material/edit:", key="edit_by_hand", width="stretch"):
        st.switch_page("edit.py", query_params={"run": run.run_id})


def _others(run: RunRow) -> None:
    left, right = st.columns(2)
    with left:
        _opens(run, Dialog.BASE, "Base kernel", ":material/keep:", "set it once, or pin it")
        _opens(run, Dialog.CLASS, "Class", ":material/category:", "the kernel class")
    with right:
        _opens(run, Dialog.MODEL, "Model", ":material/smart_toy:", "another one, or a retry")
        _opens(run, Dialog.HINT, "Hint", ":material/lightbulb:", key="h")


def _switches(run: RunRow) -> None:
    in_force = queries.switches(index.current(), run.run_id)
    rows = (
        (CommandKind.COLLECT, "Collect profiles", in_force.collect, "profile kernels, for you to see"),
        (CommandKind.EXPOSE, "Show them to the model", in_force.expose, "put a profile into the optimisation prompt"),
    )
    for kind, label, value, help_text in rows:
        key = f"{kind}:{run.run_id}"
        last = f"{key}:in_force"
        # Somebody, perhaps elsewhere, has changed it; or the page was left, with which a widget's value is forgotten.
        if key not in st.session_state or st.session_state.get(last) != value:
            st.session_state[last] = value
            # Trap: writing a widget's value overrules a click that is on its way, so never write what it shows already.
            if st.session_state.get(key) != value:
                st.session_state[key] = value.value
        st.segmented_control(
            label, [s.value for s in Switch], key=key, required=True, help=help_text, width="stretch",
            on_change=_send_switch, args=(run.run_id, kind, key),
        )  # fmt: skip
    if (scale := queries.asked_depths(index.current(), run.run_id)) is not None:
        asked = queries.asked_exposure(index.current(), run.run_id)
        st.caption(auto_words.auto(exposure.first_depth(run.kernel_class, scale, asked), run.depths))


def _hint(run: RunRow) -> None:
    with st.form("hint_form", border=False, clear_on_submit=True):
        st.text_area(
            "Hint for the next prompt", key="hint", height=68, max_chars=2000,
            placeholder="e.g. keep the tile of B in registers",
        )  # fmt: skip
        st.form_submit_button("Send hint", icon=":material/lightbulb:", on_click=steer.hint, args=(run.run_id, "hint"))
    waiting = queries.switches(index.current(), run.run_id).pending_hints
    if waiting:
        st.caption(f":material/schedule: waits for the next prompt: {wording.plain(waiting[-1][:120])}")


def _send_switch(run_id: str, kind: CommandKind, key: str) -> None:
    steer.send(run_id, kind, str(st.session_state[key]))
