"""The hint box of the panel, under a key of the keyboard."""

from __future__ import annotations

import streamlit as st

from pages.parts.steering import dialogs, steer
from storage.queries import RunRow


@st.dialog("Hint for the next prompt", icon=":material/lightbulb:", on_dismiss=dialogs.close)
def dialog(run: RunRow) -> None:
    """Ask for it, say whom it reaches, confirm."""
    st.text_area("Hint", key="hint_text", height=110, max_chars=2000)
    st.caption("Used once, in the next prompt; not in the reply being written now.")
    if dialogs.buttons("hint", "Send the hint", ":material/lightbulb:"):
        steer.hint(run.run_id, "hint_text")
        dialogs.leave()
