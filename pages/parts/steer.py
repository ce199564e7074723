"""Sending steering commands from a page, in the name of who is logged in, with a word back to the person."""

from __future__ import annotations

import time
from dataclasses import dataclass

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import access, wording
from storage import commands, folder
from storage.commands import CommandError
from storage.records import CommandKind

NEWS_S = 20.0


def send(run_id: str, kind: CommandKind, argument: str = "") -> None:
    """Write one command; what becomes of it is shown in the command list."""
    ask(run_id, kind, argument)


def ask(run_id: str, kind: CommandKind, argument: str = "") -> bool:
    """The same; False when it was not taken."""
    try:
        commands.send(folder.find_run(run_id).commands_file, kind, argument, access.person())
    except (CommandError, FileNotFoundError) as error:
        say(wording.plain(str(error)), ":material/error:")
        return False
    said = f"Asked: {wording.COMMAND_NAME[kind]} {wording.plain('' if kind in _UNREADABLE else argument[:60])}"
    say(said, ":material/send:")
    return True


def hint(run_id: str, key: str) -> None:
    """Send what stands in the text box of that key, if anything."""
    if text := str(st.session_state[key]).strip():
        send(run_id, CommandKind.HINT, text)


_UNREADABLE = (CommandKind.SUBMIT, CommandKind.ANSWER, CommandKind.LIFT)


def resume(run_id: str) -> bool:
    """Start an engine on a run that has none. False when that failed, which is told."""
    try:
        with st.spinner("Starting an engine"):
            supervisor.resume(folder.find_run(run_id))
    except (EngineError, FileNotFoundError) as error:
        say(wording.plain(str(error)), ":material/error:")
        return False
    return True


def give_word_back() -> None:
    """Say what became of the last act, where the person is looking, for as long as it is news.

    Trap: a toast's message outlives those of the elements around it when one drawing is cut short by the next, and
    then names a place that is not there: the page goes blank. Trap: what a callback of a fragment draws replaces the
    page's first elements.
    """
    with st.container():  # always there, so that a word which comes or goes moves nothing
        found = st.session_state.get("word_back")
        if found and time.time() - found.at < NEWS_S:
            st.caption(f"{found.icon} {found.text}")


@dataclass(frozen=True, slots=True)
class Word:
    """What became of an act: text safe for Markdown, an icon, when (seconds since the epoch)."""

    text: str
    icon: str
    at: float


def say(text: str, icon: str) -> None:
    """Have something told where `give_word_back` stands."""
    st.session_state["word_back"] = Word(text, icon, time.time())
