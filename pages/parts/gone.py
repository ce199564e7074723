"""What a page says in the place of a text that is missing from the run folder, or damaged."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages.parts.texts import Text


def draw(text: Text, what: str) -> None:
    """Which file it is, and what can be done about it. `what` names the text: "source", "prompt"."""
    name = Path(text.gone).name
    is_what = "is damaged" if text.is_damaged else "is missing from the run folder"
    st.error(
        f"**The {what} {is_what}.** Restore `blobs/{name[:12]}…` from a backup. Results and all other texts are "
        "unaffected.",
        icon=":material/folder_off:",
    )
    st.caption("File to restore", help=f"`{text.gone}`")
