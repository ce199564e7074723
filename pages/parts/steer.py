"""Sending steering commands from a page, in the name of who is logged in, with a word back to the person."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import access, client, wording
from storage import commands, folder
from storage.commands import CommandError
from storage.records import CommandKind

NEWS_S = 20.0

_word = st.components.v2.component(
    "tilewright_word",
    html='<div role="status"><div class="word" hidden></div></div>',
    css=client.read("word.css"),
    js=client.read("word.js"),
)


def send(run_id: str, kind: CommandKind, argument: str = "") -> None:
    """Write one command; what becomes of it is shown in the command list."""
    ask(run_id, kind, argument)


def ask(run_id: str, kind: CommandKind, argument: str = "") -> bool:
    """The same; False when it was not taken."""
    try:
        commands.send(folder.find_run(run_id).commands_file, kind, argument, access.person())
    except (CommandError, FileNotFoundError) as error:
        say(str(error), is_error=True)
        return False
    say(f"Asked: {wording.COMMAND_NAME[kind]} {'' if kind in _UNREADABLE else argument[:60]}".strip())
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
        say(str(error), is_error=True)
        return False
    return True


def give_word_back() -> None:
    """Say what became of the last act, over the page, for as long as it is news. Once on a page, last in its live part.

    Trap: a toast's message outlives those of the elements around it when one drawing is cut short by the next, and
    then names a place that is not there: the page goes blank. Trap: what a callback of a fragment draws replaces the
    page's first elements.
    """
    found: Word | None = st.session_state.get("word_back")
    word = found if found and time.time() - found.at < NEWS_S else _SILENCE
    _word(data=asdict(word) | {"seconds": NEWS_S}, key="word_back_shown")


@dataclass(frozen=True, slots=True)
class Word:
    """What became of an act, and when (seconds since the epoch)."""

    text: str
    at: float
    is_error: bool = False


_SILENCE = Word("", 0.0)


def say(text: str, *, is_error: bool = False) -> None:
    """Have something told."""
    st.session_state["word_back"] = Word(text, time.time(), is_error)
