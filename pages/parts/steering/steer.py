"""Sending steering commands from a page, in the name of who is logged in, with a word back to the person."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import access, client, index, method, run_settings, wording
from pages.parts.status.alerts import Act
from pages.parts.steering import dialogs
from pages.parts.steering.verb_words import VERB_WORDS
from storage.codec import DecodeError
from storage.index import queries
from storage.index.queries import RunRow
from storage.run import folder
from storage.run.steering import commands
from storage.run.steering.commands import CommandError
from storage.run.steering.verbs import CommandKind

NEWS_S, ERROR_S = 4.0, 12.0
OLD_S = 10.0
"""A word that the browser gets later than this is no news: a page that was opened anew does not say it again."""
RECORDED = (
    "This run plays recorded replies: {} stands in the prompt, but no model reads it and the reply stays the "
    "same. To see it act, choose another model under *More* → *Model*, or start a run with a model of your own."
)

_word = st.components.v2.component(
    "tilewright_word",
    html='<div role="status"><div class="word" hidden></div></div>',
    css=client.read("steering/word.css"),
    js=client.read("steering/word.js"),
)


def button(label: str, run_id: str, command: CommandKind, argument: str = "", **look: Any) -> None:
    """A button for one command. Its key names the whole command: a click can only mean what stood on the button.

    Trap: a command must never hang on a widget that has a value (`on_change`). When such a widget goes away, as with
    another run or at a run's end, its value comes once more with the next message of the browser and counts as changed.
    Trap: under one key for several runs, a click on the page that is being left would act on the run that comes.
    """
    key = f"{command}:{run_id}:{argument}"
    st.button(label, key=key, on_click=send, args=(run_id, command, argument), **look)


def verb_button(run: RunRow, command: CommandKind, argument: str = "", **look: Any) -> None:
    """The button of a verb as its table has it; out of reach, with the reason, where the search method refuses it."""
    words, why = VERB_WORDS[command], refusal(run, command)
    usual = {"icon": words.icon, "help": why or words.tip_words(method.words(run.run_id)), "disabled": why is not None}
    button(words.label, run.run_id, command, argument, **(usual | look))


def refusal(run: RunRow, *commands: CommandKind) -> str | None:
    """Why the search method of a run honours none of these verbs; None where it honours one."""
    refused = supervisor.refused_by(queries.strategy(index.current(), run.run_id), _width(run.run_id))
    return refused[commands[0]] if all(command in refused for command in commands) else None


def is_recorded(run: RunRow) -> bool:
    """Whether the run's next replies are recorded ones, which no word of a person changes."""
    return run.has_recorded_replies and queries.steering_state(index.current(), run.run_id).model is None


def _width(run_id: str) -> int:
    try:
        return run_settings.of(run_id).width
    except (FileNotFoundError, DecodeError):
        return 1


def send(run_id: str, command: CommandKind, argument: str = "") -> None:
    """Write one command; what becomes of it is shown in the command list."""
    ask(run_id, command, argument)


def ask(run_id: str, command: CommandKind, argument: str = "") -> bool:
    """Write one command; False when it was not taken."""
    try:
        commands.send(folder.find_run(run_id).commands_file, command, argument, access.person())
    except (CommandError, FileNotFoundError) as error:
        say(str(error), is_error=True)
        return False
    words = VERB_WORDS[command].sent_words(_readable(run_id, argument)[:60], method.words(run_id))
    is_left = st.query_params.get("run", run_id) != run_id  # clicked before anything of another run's page had come
    say(f"Run {run_id}: {words}" if is_left else words)
    return True


def act(run_id: str, action: Act) -> None:
    """Carry out what an alert offers: at once, or through the dialog that shows first what will follow."""
    if dialog := dialogs.OF_VERB.get(action.command):
        dialogs.ask(dialog, run_id, action.argument)
    else:
        send(run_id, action.command, action.argument)


def pending(run_id: str) -> CommandKind | None:
    """PAUSE or STOP while the engine at work has not carried out the newest one; seen as soon as it was asked for. A
    stop is carried out when the run has ended."""
    db = index.current()
    try:
        asked, _ = commands.read_from(folder.find_run(run_id).commands_file)
    except FileNotFoundError:
        return None
    newest = next(
        (c for c in reversed(asked) if c.kind in (CommandKind.PAUSE, CommandKind.RESUME, CommandKind.STOP)), None
    )
    if newest is None or newest.kind is CommandKind.RESUME or newest.asked_at < (queries.engine_began(db, run_id) or 0):
        return None
    row = {c.command_id: c for c in queries.commands(db, run_id)}.get(newest.command_id)
    is_held = row and row.effective_at is not None and newest.kind is not CommandKind.STOP
    is_settled = is_held or (row and row.refused_at is not None)
    return None if is_settled else newest.kind


def _readable(run_id: str, argument: str) -> str:
    """A kernel by its number."""
    kernel = queries.candidate(index.current(), run_id, argument) if argument else None
    return f"kernel {kernel.number}" if kernel else argument


def resume(run_id: str) -> bool:
    """Start an engine on a run that has none. False when that failed, which is told."""
    try:
        with st.spinner("Starting the engine"):
            start_engine(run_id)
    except (EngineError, CommandError, FileNotFoundError) as error:
        say(str(error), is_error=True)
        return False
    return True


def start_engine(run_id: str) -> None:
    """Start an engine on a run that has none; one that was paused before its engine ended is no longer.

    Raises:
        EngineError, CommandError, FileNotFoundError: it could not be; the message says why.
    """
    run = folder.find_run(run_id)
    asked, _ = commands.read_from(run.commands_file)
    holds = [command.kind for command in asked if command.kind in (CommandKind.PAUSE, CommandKind.RESUME)]
    if holds[-1:] == [CommandKind.PAUSE]:
        commands.send(run.commands_file, CommandKind.RESUME, asked_by=access.person())
    supervisor.resume(run)


def give_word_back() -> None:
    """Say what became of the last act, over the page, for as long as it is news. Once on a page, last in its live part.

    Trap: a toast's message outlives those of the elements around it when one drawing is cut short by the next, and
    then names a place that is not there: the page goes blank. Trap: what a callback of a fragment draws replaces the
    page's first elements.
    """
    latest: Word | None = st.session_state.get("word_back")
    word = latest if latest and time.time() - latest.at < OLD_S and not _was_said_elsewhere(latest) else _SILENCE
    _word(data=asdict(word) | {"seconds": ERROR_S if word.is_error else NEWS_S}, key="word_back_shown")


def _was_said_elsewhere(word: Word) -> bool:
    """Whether another page has said it already; one that was left before it could leaves it to the next."""
    place = st.session_state.get("place", "")
    at, where = st.session_state.setdefault("word_said", (word.at, place))
    if at != word.at:
        at, where = st.session_state["word_said"] = (word.at, place)
    return bool(where != place)


def take_back(text: str, told_at: float) -> None:
    """Say this no longer, if it was said before `told_at`: what became of it is told elsewhere on the page."""
    latest: Word | None = st.session_state.get("word_back")
    if latest and latest.text == text and latest.at < told_at:
        st.session_state["word_back"] = _SILENCE


@dataclass(frozen=True, slots=True)
class Word:
    """What became of an act, and when (seconds since the epoch)."""

    text: str
    at: float
    is_error: bool = False


_SILENCE = Word("", 0.0)


def say(text: str, *, is_error: bool = False) -> None:
    """Have something told, with a capital first."""
    st.session_state["word_back"] = Word(wording.opened(text), time.time(), is_error)
