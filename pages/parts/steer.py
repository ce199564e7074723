"""Sending one steering command from a page, with a word back to the person."""

from __future__ import annotations

import streamlit as st

from pages.parts import wording
from storage import commands, folder
from storage.commands import CommandError
from storage.records import CommandKind


def send(run_id: str, kind: CommandKind, argument: str = "") -> None:
    """Write one command; what becomes of it is shown in the command list."""
    try:
        commands.send(folder.find_run(run_id).commands_file, kind, argument)
    except (CommandError, FileNotFoundError) as error:
        st.session_state["word_back"] = (wording.plain(str(error)), ":material/error:")
    else:
        said = f"Asked: {wording.COMMAND_NAME[kind]} {wording.plain(argument[:60])}"
        st.session_state["word_back"] = (said, ":material/send:")


def give_word_back() -> None:
    """Show what `send` has to say. Trap: what a callback of a fragment draws replaces the page's first elements."""
    if found := st.session_state.pop("word_back", None):
        text, icon = found
        st.toast(text, icon=icon)
