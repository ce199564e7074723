"""A run's page pinned to a moment: drawn from the index as it stood, or a replay as it stands at an earlier or a later
step, until the person goes live again."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass

import streamlit as st

from pages.parts import index, run_state
from storage.index import past, queries
from storage.index.database import Database, Snapshot
from storage.index.queries import RunRow
from storage.run.folder import run_at
from storage.run.settings import RunState


@dataclass(frozen=True, slots=True)
class PinnedSnapshot:
    """What a pinned page is drawn from, the last event in it, and its moment (seconds since the epoch).

    `state` is the run's then. `step` is the last finished step of a replay that a person went to; None on a page that
    was frozen.
    """

    snapshot: Database
    last_seq: int
    at: float
    state: RunState
    step: int | None = None


def of(run_id: str) -> PinnedSnapshot | None:
    """What this session's page of the run is drawn from; None while it is live."""
    pinned = st.session_state.get(_key(run_id))
    return pinned if isinstance(pinned, PinnedSnapshot) else None


def is_sought(run_id: str) -> bool:
    """Whether the page shows a replay at a step that a person went to, and so at a state that is not its own now."""
    pinned = of(run_id)
    return pinned is not None and pinned.step is not None


def view(run_id: str) -> AbstractContextManager[None]:
    """Everything drawn inside shows the run as it was when the page was pinned, or as it is now."""
    pinned = of(run_id)
    return index.looking_at(pinned.snapshot if pinned else None)


def state_of(run: RunRow) -> RunState:
    """The run's state at the moment that its page shows."""
    pinned = of(run.run_id)
    return pinned.state if pinned else run_state.of(run)


def switch(run_id: str) -> None:
    """Pin a live page, or make a pinned one live."""
    if _let_go(run_id):
        return
    db = index.current()
    run = queries.run(db, run_id)
    if run is None:
        return
    snapshot = Snapshot(db)
    pinned = PinnedSnapshot(snapshot, queries.last_seq(snapshot, run_id), time.time(), run_state.of(run))
    st.session_state[_key(run_id)] = pinned


def seek(run_id: str, step: int) -> None:
    """Pin the page of a replay to the end of a step, told already or not; 0 is before the first one."""
    folder = run_at(run_id)
    entries = past.course_of(folder).until(step)
    if not entries:
        return
    snapshot = past.index_until(folder, entries)
    run = queries.run(snapshot, run_id)
    state = run.state if run is not None and run.state.is_over else RunState.RUNNING
    _let_go(run_id)
    st.session_state[_key(run_id)] = PinnedSnapshot(snapshot, entries[-1].seq, entries[-1].time, state, step)


def button(run_id: str) -> None:
    """The button that freezes the page, and lets it go live again."""
    is_pinned = of(run_id) is not None
    st.button(
        "Go live" if is_pinned else "Freeze page", key="freeze", shortcut="F", on_click=switch, args=(run_id,),
        icon=":material/play_circle:" if is_pinned else ":material/pause_circle:",
        type="primary" if is_pinned else "secondary",
        help="holds this page still; the run goes on (Pause holds the run)" if not is_pinned
        else "show the run as it is now",
    )  # fmt: skip


def _let_go(run_id: str) -> bool:
    """Make a pinned page live; False where it is live."""
    pinned = st.session_state.pop(_key(run_id), None)
    if not isinstance(pinned, PinnedSnapshot):
        return False
    pinned.snapshot.close()
    return True


def _key(run_id: str) -> str:
    return f"frozen:{run_id}"
