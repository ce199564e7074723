"""Sending steering commands from a page, in the name of who is logged in, with a word back to the person."""

from __future__ import annotations

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import access, wording
from storage import commands, folder
from storage.commands import CommandError
from storage.records import CommandKind


def send(run_id: str, kind: CommandKind, argument: str = "") -> None:
    """Write one command; what becomes of it is shown in the command list."""
    ask(run_id, kind, argument)


def ask(run_id: str, kind: CommandKind, argument: str = "") -> bool:
    """The same; False when it was not taken."""
    try:
        commands.send(folder.find_run(run_id).commands_file, kind, argument, access.person())
    except (CommandError, FileNotFoundError) as error:
        st.session_state["word_back"] = (wording.plain(str(error)), ":material/error:")
        return False
    said = f"Asked: {wording.COMMAND_NAME[kind]} {wording.plain('' if kind in _UNREADABLE else argument[:60])}"
    st.session_state["word_back"] = (said, ":material/send:")
    return True


_UNREADABLE = (CommandKind.SUBMIT, CommandKind.ANSWER, CommandKind.LIFT)


def resume(run_id: str) -> bool:
    """Start an engine on a run that has none. False when that failed, which is told."""
    try:
        with st.spinner("Starting an engine"):
            supervisor.resume(folder.find_run(run_id))
    except (EngineError, FileNotFoundError) as error:
        st.session_state["word_back"] = (wording.plain(str(error)), ":material/error:")
        return False
    return True


def give_word_back() -> None:
    """Show what `send` has to say. Trap: what a callback of a fragment draws replaces the page's first elements."""
    if found := st.session_state.pop("word_back", None):
        text, icon = found
        st.toast(text, icon=icon)
