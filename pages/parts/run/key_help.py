"""The keyboard shortcuts of a run's page, listed behind a button."""

from __future__ import annotations

import streamlit as st

KEYS = (
    ("F", "freeze the page, or go live again"),
    ("P", "pause or resume"),
    ("H", "write a hint"),
    ("J", "next kernel, while one is open"),
    ("K", "previous kernel"),
    ("Esc", "close the kernel"),
    ("← →", "move along the lineage while it has focus; Enter opens"),
)


def draw() -> None:
    """The list; no key does anything while a person types."""
    with st.popover("Keys", key="keys", type="tertiary", help="keyboard shortcuts"):
        st.markdown("\n".join(f"- `{key}` {what}" for key, what in KEYS))
        st.caption("Off while you type.")
