"""What a browser's tab says: where it is, and of a run that needs a person what for. One small message; nothing is
drawn for it."""

from __future__ import annotations

import streamlit as st

from pages.parts import access, run_state, wording
from storage.index import queries
from storage.index.database import Database
from storage.index.queries import RunRow
from storage.run.settings import RunState

NEEDS_A_PERSON = (RunState.WAITING, RunState.PAUSED, RunState.LOST, RunState.FAILED)


def say(*words: str) -> None:
    """Name the tab, the part that tells it from others first: a browser cuts the end."""
    st.set_page_config(page_title=" · ".join((*words, "Tilewright")))


def say_run(db: Database, run: RunRow) -> None:
    """The run's title, after what it needs of a person."""
    state = run_state.shown_state(run)
    say(*([_need(db, run, state)] if state in NEEDS_A_PERSON else []), run.title)


def _need(db: Database, run: RunRow, state: RunState) -> str:
    if state is RunState.WAITING and access.may_steer():
        if queries.open_approval(db, run.run_id) is not None:
            return "Your approval is needed"
        if queries.open_question(db, run.run_id) is not None:
            return "Your reply is needed"
    return wording.capital(wording.STATE_NAME[state])
