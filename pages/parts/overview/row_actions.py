"""What can be done to a run right from its row: pause, go on, stop."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.parts import access
from pages.parts.steering import dialogs, steer
from pages.parts.steering.dialogs import Dialog
from pages.parts.widgets import table
from storage.queries import RunRow
from storage.records import CommandKind, RunState

SIGN = "do:"
HELD = (RunState.PAUSED, RunState.WAITING)


def cells(run: RunRow, state: RunState) -> list[table.Cell]:
    """Buttons for a run that an engine works on, where people may steer."""
    if state.is_over or not access.may_steer():
        return []
    hold = CommandKind.RESUME if state in HELD else CommandKind.PAUSE
    return [
        _button("Resume" if hold is CommandKind.RESUME else "Pause", hold, run),
        _button("Stop", CommandKind.STOP, run),
    ]


def _button(label: str, kind: CommandKind, run: RunRow) -> table.Cell:
    icon = {CommandKind.RESUME: "running", CommandKind.PAUSE: "paused", CommandKind.STOP: "stopped"}[kind]
    return table.button(label, icon, f"{SIGN}{kind}:{run.run_id}", f"{label}: {run.title}, {run.run_id}")


def take(opened: str, shown: Sequence[RunRow]) -> bool:
    """Do what a button of a row asked for; False when it was no such button."""
    if not opened.startswith(SIGN):
        return False
    kind, _, run_id = opened.removeprefix(SIGN).partition(":")
    run = next((one for one in shown if one.run_id == run_id), None)
    if run and kind == CommandKind.STOP:
        dialogs.ask(Dialog.STOP, run.run_id)
        st.rerun()
    elif run and kind in (CommandKind.PAUSE, CommandKind.RESUME):
        steer.send(run.run_id, CommandKind(kind))
        st.rerun(scope="fragment")  # the word back stands at the top of the page
    return True
