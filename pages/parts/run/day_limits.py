"""The limits that all runs of this machine keep to in one day: what they are, and others."""

from __future__ import annotations

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import wording

FIELDS = {"calls": "Calls per day", "tokens": "Tokens per day", "cost": "US dollars per day"}


def draw() -> None:
    """A form behind a button. An empty field is no limit."""
    with st.popover("Daily limits", icon=":material/today:", width="stretch"):
        try:
            now = supervisor.day_limits()
        except EngineError as error:
            st.error(wording.plain(str(error)), icon=":material/error:")
            return
        for words, used, allowed in supervisor.spent_today():
            st.caption(wording.plain(f"{used:g} of {allowed:g} {words.removesuffix(' of a day')} used today"))
        st.caption("For all runs together, from the next call on. Leave a field empty for no limit.")
        with st.form("day_limits", border=False):
            given = {
                name: st.number_input(label, 0.0, value=now.get(name), format="%g", key=f"day_{name}")
                for name, label in FIELDS.items()
            }
            if st.form_submit_button("Save daily limits", icon=":material/today:"):
                _set({name: value for name, value in given.items() if value is not None})


def _set(limits: dict[str, float]) -> None:
    try:
        supervisor.set_day_limits(limits)
    except (EngineError, OSError) as error:
        st.error(wording.plain(str(error)), icon=":material/error:")
    else:
        st.caption(":material/check: Saved. Applies from the next call on.")
