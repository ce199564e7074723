"""What a person has typed and not sent: a reply, a kernel, a hint. Kept by this server until it is sent or the server
ends, so that neither another page nor a reload loses it. What a field has not told yet stays in the browser: unsent.js.
"""

from __future__ import annotations

import streamlit as st

from pages.parts import access

MOST = 200
"""Drafts kept at once; the oldest goes first."""
_kept: dict[tuple[str, str], str] = {}


def begin(key: str, text: str = "") -> None:
    """Before its field: what was left in it, else `text`. `key` is that of the field and names what is written for:
    the run, and the question or the kernel. That of a text begins with `draft:`, by which the browser knows it."""
    if key not in st.session_state:
        st.session_state[key] = _kept.get((access.person(), key), text)


def keep(key: str) -> None:
    """For the field's `on_change`, which is told once the field has been left."""
    _kept.pop(place := (access.person(), key), None)
    _kept[place] = str(st.session_state[key] or "")
    while len(_kept) > MOST:
        _kept.pop(next(iter(_kept)), None)


def forget(key: str) -> None:
    """It was sent."""
    _kept.pop((access.person(), key), None)
