"""Every command that people sent to a run: who, when, its state, from which step it is in effect and its result."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from pages.parts import change_token, index, method, run_state
from pages.parts.status import address, now
from pages.parts.steering import command_list
from pages.parts.widgets import table
from storage.index import queries
from storage.index.queries import CommandRow
from storage.run.steering.verbs import VERBS, CommandKind

run_id = st.query_params.get("run", "")
PAGE = 100
COLUMNS = [
    table.Column("what", "Command"),
    table.Column("who", "Sent by"),
    table.Column("read", "Received", help="when the engine read it, and how long after it was sent"),
    table.Column("holds", "In effect", help="the first step it applies to, and how long after it was sent"),
    table.Column("state", "State"),
    table.Column("effect", "Result", "words"),
]
ANY = "any"


@st.fragment
def live() -> None:
    """The page; drawn again when something about the run has changed."""
    db = index.current()
    token = change_token.of([run_id], is_overview=False)
    run = queries.run(db, run_id)
    if run is None:
        address.unknown_run(run_id, token)
        return
    now.watch([run_id], is_overview=False, token=token)
    st.page_link(
        "run.py", label=run.title, icon=":material/arrow_back:", query_params={"run": run_id},
        width="content",
    )  # fmt: skip
    st.title("Steering", anchor=False)
    asked = queries.commands(db, run_id)[::-1]
    if not asked:
        st.caption("No commands yet. Commands sent to this run are listed here with their results.")
        return
    has_engine = run_state.has_engine(run_id)
    effects = command_list.effects(db, run_id, method.words(run_id))
    commands = filtered(asked, has_engine, effects)
    is_all = len(commands) > PAGE and st.session_state.get("all_commands", False)
    shown = commands if is_all else commands[:PAGE]
    st.caption(f"Showing {len(shown):,} of {len(asked):,}, newest first")
    rows = [table.Row(c.command_id, command_list.wide(run, c, has_engine, effects)) for c in shown]
    table.draw("Commands sent to this run, newest first", COLUMNS, rows, key="all_steering", is_cards=True)
    if len(commands) > PAGE:
        st.toggle(f"Show all {len(commands):,}", key="all_commands")


def filtered(asked: list[CommandRow], has_engine: bool, effects: Mapping[str, str]) -> list[CommandRow]:
    """The filter's fields above, the commands that pass it back."""
    first, second, third, fourth = st.columns(4)
    verbs = [ANY, *sorted({c.kind for c in asked})]
    verb = first.selectbox("Command", verbs, format_func=_verb_name, key="filter_kind")
    state = second.selectbox("State", [ANY, *command_list.STATES], key="filter_state")
    person = third.selectbox("Sent by", [ANY, *sorted({c.asked_by for c in asked})], key="filter_person")
    words = fourth.text_input("Find", key="filter_words", placeholder="in the command or its result").strip().lower()
    return [
        c for c in asked
        if verb in (ANY, c.kind) and state in (ANY, command_list.stage(c, has_engine)) and person in (ANY, c.asked_by)
        and words in f"{c.kind} {c.argument} {c.note} {effects.get(c.command_id, '')}".lower()
    ]  # fmt: skip


def _verb_name(verb: str) -> str:
    return ANY if verb == ANY else VERBS[CommandKind(verb)].name


live()
