"""Holding a run's page still: it is drawn from the index as it stood, until the person goes live again."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass

import streamlit as st

from pages.parts import index
from storage import queries
from storage.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Frozen:
    """What a held page is drawn from, the last event in it, and when it was frozen (seconds since the epoch)."""

    snapshot: Snapshot
    last_seq: int
    at: float


def held(run_id: str) -> Frozen | None:
    """What this session's page of the run is drawn from; None while it is live."""
    found = st.session_state.get(_key(run_id))
    return found if isinstance(found, Frozen) else None


def view(run_id: str) -> AbstractContextManager[None]:
    """Everything drawn inside shows the run as it is held, or as it is now."""
    found = held(run_id)
    return index.looking_at(found.snapshot if found else None)


def switch(run_id: str) -> None:
    """Hold a live page, or make a held one live."""
    found = st.session_state.pop(_key(run_id), None)
    if isinstance(found, Frozen):
        found.snapshot.close()
        return
    snapshot = Snapshot(index.current())
    st.session_state[_key(run_id)] = Frozen(snapshot, queries.last_seq(snapshot, run_id), time.time())


def button(run_id: str) -> None:
    """The switch."""
    is_held = held(run_id) is not None
    st.button(
        "Go live" if is_held else "Freeze", key="freeze", shortcut="F", on_click=switch, args=(run_id,),
        icon=":material/play_circle:" if is_held else ":material/pause_circle:",
        type="primary" if is_held else "secondary",
        help="stop updating this page; the run continues" if not is_held else "show the run as it is now",
    )  # fmt: skip


def _key(run_id: str) -> str:
    return f"frozen:{run_id}"
