"""The open dialog of a page: which it is, and what it is drawn with."""

from __future__ import annotations

import streamlit as st

from pages.parts import access, index, run_state
from pages.parts.steering import (
    attendance_panel,
    base_dialog,
    class_dialog,
    dialogs,
    hint_dialog,
    model_dialog,
    stop_desk,
    try_again,
)
from pages.parts.steering.dialogs import Dialog, Opened
from storage import queries
from storage.queries import RunRow


def follow() -> None:
    """Draw the whole page where only a part is being drawn and the dialog needs it. First thing of every live part.

    A dialog was opened, confirmed or closed, or an engine has begun or ended since: what it offers is another then, and
    a question that only an engine can act on is closed, lest it act when the run is resumed.
    """
    dialogs.sweep()
    found = _found()
    if found is None:
        return
    asked, run = found
    is_over = run_state.of(run).is_over
    if is_over and asked.dialog in dialogs.NEEDS_ENGINE:
        dialogs.leave()
    if asked.is_over not in (None, is_over):
        asked.is_over = None
        asked.held.clear()
        st.rerun()
    asked.is_over = is_over


def draw() -> None:
    """Draw it, if any; for the page itself, after its live part."""
    found = _found()
    if found is None or not access.may_steer():
        return
    asked, run = found
    match asked.dialog:
        case Dialog.STOP:
            stop_desk.confirm(run)
        case Dialog.END:
            stop_desk.end(run)
        case Dialog.TRY_AGAIN:
            try_again.dialog(run, run_state.of(run), asked.wanted)
        case Dialog.BASE:
            base_dialog.dialog(run, asked.wanted)
        case Dialog.MODEL:
            model_dialog.dialog(run, queries.orders(index.current(), run.run_id))
        case Dialog.CLASS:
            class_dialog.dialog(run)
        case Dialog.HINT:
            hint_dialog.dialog(run)
        case Dialog.RECORDING:
            attendance_panel.save_recording(run)


def _found() -> tuple[Opened, RunRow] | None:
    """What is open, and the run it is about; None as well where that run is gone."""
    asked = dialogs.opened()
    run = queries.run(index.current(), asked.run_id) if asked else None
    return (asked, run) if asked and run else None
