"""The open dialog of a page: which it is, and what it is drawn with."""

from __future__ import annotations

import streamlit as st

from pages.parts import access, index, run_state
from pages.parts.steering import command_dialogs, dialogs, fork_dialog, limits_dialog, package_dialog, steer
from pages.parts.steering.dialogs import Dialog, Opened
from storage.index import queries
from storage.index.queries import RunRow


def follow() -> None:
    """Draw the whole page where only a part is being drawn and the dialog needs it. First thing of every live part.

    A dialog was opened, confirmed or closed, or an engine has begun or ended since: what it offers is another then, and
    a question that only an engine can act on is closed, lest it act when the run is resumed.
    """
    dialogs.sweep()
    opened = _found()
    if opened is None:
        return
    asked, run = opened
    is_over = run_state.of(run).is_over
    has_turned = asked.is_over not in (None, is_over)
    if is_over and asked.dialog in dialogs.NEEDS_ENGINE:
        if asked.is_confirmed or asked.is_overtaken:
            steer.say("Nothing was sent: the run has ended.")
        dialogs.leave()
    if has_turned:
        asked.is_over = is_over
        asked.held.clear()
        st.rerun()
    asked.is_over = is_over


def draw() -> None:
    """Draw it, if any; for the page itself, after its live part."""
    opened = _found()
    if opened is None or not (access.may_steer() or opened[0].dialog is Dialog.PACKAGE):
        return
    asked, run = opened
    match asked.dialog:
        case Dialog.PACKAGE:
            package_dialog.of_run(run, asked.candidate_id)
        case Dialog.STOP:
            command_dialogs.confirm_stop(run)
        case Dialog.END:
            command_dialogs.force_stop(run)
        case Dialog.TRY_AGAIN:
            fork_dialog.go_back_or_fork(run, run_state.of(run), asked.candidate_id)
        case Dialog.BASE:
            command_dialogs.choose_base(run, asked.candidate_id)
        case Dialog.MODEL:
            command_dialogs.choose_model(run, queries.steering_state(index.current(), run.run_id))
        case Dialog.CLASS:
            command_dialogs.choose_class(run)
        case Dialog.HINT:
            command_dialogs.write_hint(run)
        case Dialog.LIMITS:
            limits_dialog.change_limits(run, run_state.of(run))
        case Dialog.RECORDING:
            command_dialogs.save_recording(run)


def _found() -> tuple[Opened, RunRow] | None:
    """What is open, and the run it is about; None as well where that run is gone."""
    asked = dialogs.opened()
    run = queries.run(index.current(), asked.run_id) if asked else None
    return (asked, run) if asked and run else None
