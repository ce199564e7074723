"""Every steering command with its three moments: asked, acknowledged, in effect (or refused and why)."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from pages.parts import index, run_state, wording
from pages.parts.steering import kernel_choice
from pages.parts.widgets import table
from storage.index import queries
from storage.index.database import Database
from storage.index.queries import CommandRow, RunRow
from storage.index.queries.steering import CallAnswered, DepthBegun, Effect, KernelMade, ProfileAsked, RuleCarried
from storage.results.vocabulary import FAILED
from storage.run.method_words import AS_STORED, MethodWords
from storage.run.steering.command_arguments import Submission, readable
from storage.run.steering.commands import NOBODY_KNOWN
from storage.run.steering.verbs import VERBS, Result, Takes

LIMIT = 8
COLUMNS = [
    table.Column("what", "Command"),
    table.Column("state", "State", help="sent, received, in effect, rejected; or the run ended before it took effect"),
]
ASKED, UNREAD, READ, HOLDS, REFUSED = "sent", "not read", "received", "in effect", "rejected"
CUT_OFF = "not in effect"
STATES = (ASKED, UNREAD, READ, HOLDS, CUT_OFF, REFUSED)
_SHOWN_LATER = (Result.DEPTH, Result.CALL, Result.PROMPTS, Result.PROFILE_IN_PROMPT)


def draw(run: RunRow) -> None:
    """The newest commands; nothing at all while nobody has steered."""
    sent = queries.commands(index.current(), run.run_id)[::-1]
    if not sent:
        return
    st.markdown(f"## Steering :gray[{len(sent):,}]")
    has_engine = run_state.has_engine(run.run_id)
    rows = [table.Row(command.command_id, cells(run, command, has_engine)) for command in sent[:LIMIT]]
    table.draw("Steering commands, newest first", COLUMNS, rows, key="commands", is_compact=True)
    if len(sent) > LIMIT:
        st.caption(f"Showing {LIMIT} of {len(sent):,}, newest first")
    st.page_link(
        "steering.py", label="All commands and their results", icon=":material/history:",
        query_params={"run": run.run_id},
    )  # fmt: skip


def cells(run: RunRow, command: CommandRow, has_engine: bool) -> dict[str, table.Cell]:
    """One command as cells."""
    # Nobody in particular, as in an example: the name of who asked is left out.
    by = f"by {command.asked_by} " if command.asked_by not in ("", NOBODY_KNOWN) else ""
    what = table.text(words(run, command)[:90], "strong", f"{by}{times(command)}")
    return {"what": what, "state": state(command, has_engine)}


def wide(run: RunRow, command: CommandRow, has_engine: bool, effects: Mapping[str, str]) -> dict[str, table.Cell]:
    """One command with a cell for each of its moments."""
    holds = f"step {command.effective_step}" if command.effective_step is not None else wording.NONE
    return {
        "what": table.text(words(run, command)[:200], "strong"),
        "who": table.text(command.asked_by or NOBODY_KNOWN, note=wording.moment(command.asked_at)),
        "read": table.text(*_later(command, command.acknowledged_at, "read")),
        "holds": table.text(holds, note=_later(command, command.effective_at, "in effect")[2]),
        "state": table.pill(stage(command, has_engine), *_LOOK[stage(command, has_engine)]),
        "effect": table.text(effects.get(command.command_id) or _not_yet(command, has_engine), note=command.note),
    }


def _later(command: CommandRow, at: float | None, what: str) -> tuple[str, str, str]:
    """Clock time, tone and how much later than the asking."""
    if at is None:
        return wording.NONE, "muted", ""
    return wording.clock(at), "", f"{what} {_after(at - command.asked_at)}"


def _after(seconds: float) -> str:
    """A delay with no more digits than matter to a person."""
    return f"after {wording.seconds(seconds)}" if seconds >= 0.1 else "at once"


def _not_yet(command: CommandRow, has_engine: bool) -> str:
    match stage(command, has_engine):
        case "rejected":
            return "no change"
        case "not in effect":
            return "none: the run ended first"
        case "in effect":
            return "no result yet" if VERBS[command.kind].result in _SHOWN_LATER else "done"
        case _:
            return "pending"


def effects(db: Database, run_id: str, words: MethodWords = AS_STORED) -> dict[str, str]:
    """What each command led to, by command id, in the words of the run's method."""
    return {name: effect_words(effect, words) for name, effect in queries.effects(db, run_id, words).items()}


def effect_words(effect: Effect, words: MethodWords) -> str:
    """One effect."""
    match effect:
        case DepthBegun():
            return f"{words.distinct} {effect.depth} started from kernel {effect.number} at step {effect.step}"
        case KernelMade(verdict=verdict, speedup=speedup):
            became = "not judged yet" if verdict is None else FAILED.get(verdict, "correct")
            return f"it is kernel {effect.number}: {became}" + (f", {speedup:.2f}× over eager" if speedup else "")
        case CallAnswered():
            return f"step {effect.step} was answered by {effect.model}"
        case RuleCarried(steps=steps):
            return f"in the prompts of {steps} {'step' if steps == 1 else 'steps'}, first of step {effect.first}"
        case ProfileAsked():
            return f"the prompt of step {effect.step} showed {'a' if effect.is_shown else 'no'} profile"


def words(run: RunRow, command: CommandRow) -> str:
    """What was asked, with kernels by their number."""
    verb, argument = VERBS[command.kind], command.argument
    match verb.takes:
        case Takes.KERNEL:
            argument = kernel_choice.number(run, argument)
        case Takes.SUBMISSION:
            argument = _submission(run, argument)
        case Takes.RULE:
            asked = queries.commands(index.current(), run.run_id)
            argument = next((c.argument for c in asked if c.command_id == argument), argument)
    return f"{verb.name} {readable(argument)}".strip()


def _submission(run: RunRow, argument: str) -> str:
    try:
        given = Submission.parse(argument)
    except ValueError:
        return argument
    made_from = f"made from {kernel_choice.number(run, given.parent_id)}" if given.parent_id else ""
    return f"{made_from}: {given.note}" if given.note else made_from


def stage(command: CommandRow, has_engine: bool) -> str:
    """How far a command has come, as one word."""
    if command.refused_at is not None:
        return REFUSED
    if command.effective_at is not None:
        return HOLDS
    if command.acknowledged_at is not None:
        return READ if has_engine else CUT_OFF
    return ASKED if has_engine else UNREAD


_LOOK: dict[str, tuple[str, str]] = {
    REFUSED: ("red", "failed"),
    HOLDS: ("green", "finished"),
    READ: ("blue", "waiting"),
    ASKED: ("gray", "waiting"),
    UNREAD: ("orange", "lost"),
    CUT_OFF: ("gray", "stopped"),
}


def state(command: CommandRow, has_engine: bool) -> table.Cell:
    """How far a command has come, as a coloured word with a note."""
    word = stage(command, has_engine)
    notes = {
        READ: "takes effect after the current step",
        ASKED: "not read by the engine yet",
        UNREAD: "no engine is running; read when the run is resumed",
        CUT_OFF: "the run ended before it took effect",
    }
    return table.pill(word, *_LOOK[word], note=notes.get(word, command.note))


def times(command: CommandRow) -> str:
    """The clock time it was asked, then how much later it was read and took effect."""
    parts = [f"at {wording.clock(command.asked_at)}"]
    moments = (("read", command.acknowledged_at), ("in effect", command.effective_at), ("rejected", command.refused_at))
    parts += [f"{what} +{wording.seconds(max(0.0, at - command.asked_at))}" for what, at in moments if at is not None]
    return ", ".join(parts)
