"""A run's page pinned to a snapshot: it is drawn from the index as it stood, until the person goes live again."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass

import streamlit as st

from pages.parts import index
from storage import queries
from storage.database import Snapshot


@dataclass(frozen=True, slots=True)
class PinnedSnapshot:
    """What a pinned page is drawn from, the last event in it, and when it was taken (seconds since the epoch)."""

    snapshot: Snapshot
    last_seq: int
    at: float


def of(run_id: str) -> PinnedSnapshot | None:
    """What this session's page of the run is drawn from; None while it is live."""
    found = st.session_state.get(_key(run_id))
    return found if isinstance(found, PinnedSnapshot) else None


def view(run_id: str) -> AbstractContextManager[None]:
    """Everything drawn inside shows the run as it was when the page was pinned, or as it is now."""
    found = of(run_id)
    return index.looking_at(found.snapshot if found else None)


def switch(run_id: str) -> None:
    """Pin a live page, or make a pinned one live."""
    found = st.session_state.pop(_key(run_id), None)
    if isinstance(found, PinnedSnapshot):
        found.snapshot.close()
        return
    snapshot = Snapshot(index.current())
    st.session_state[_key(run_id)] = PinnedSnapshot(snapshot, queries.last_seq(snapshot, run_id), time.time())


def button(run_id: str) -> None:
    """The switch."""
    is_pinned = of(run_id) is not None
    st.button(
        "Go live" if is_pinned else "Freeze", key="freeze", shortcut="F", on_click=switch, args=(run_id,),
        icon=":material/play_circle:" if is_pinned else ":material/pause_circle:",
        type="primary" if is_pinned else "secondary",
        help="stop updating this page; the run continues" if not is_pinned else "show the run as it is now",
    )  # fmt: skip


def _key(run_id: str) -> str:
    return f"frozen:{run_id}"
