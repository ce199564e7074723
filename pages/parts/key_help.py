"""The keyboard shortcuts of a run's page, listed behind a button."""

from __future__ import annotations

import streamlit as st

KEYS = (
    ("F", "freeze the page, or go live again"),
    ("J", "the next kernel, while one is open"),
    ("K", "the previous kernel"),
    ("Esc", "close the open kernel"),
    ("← →", "walk along the lineage strip, once it has the focus; Enter opens"),
)


def draw() -> None:
    """The list; no key does anything while a person types."""
    with st.popover("Keys", key="keys", type="tertiary", help="keyboard shortcuts"):
        st.markdown("\n".join(f"- `{key}` {what}" for key, what in KEYS))
        st.caption("Keys do nothing while you type.")
