"""What a page says in the place of a text that the run folder has lost."""

from __future__ import annotations

import streamlit as st

from pages.parts import wording
from pages.parts.texts import Text


def draw(text: Text, what: str) -> None:
    """Which file is missing, and what can be done about it. `what` names the text: "source", "prompt"."""
    st.error(
        f"**The {what} is gone from the run folder.** The journal names the file `{text.gone}`, which cannot be read. "
        + wording.plain(
            "Bring it back from a backup or from the machine where the run was made; its name is the SHA-256 of its "
            "content. Nothing else of the run depends on it: the journal and all other files are still there."
        ),
        icon=":material/folder_off:",
    )
