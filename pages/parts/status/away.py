"""What a page says while its server does not answer: that runs go on, and that nothing need be done here.

Trap: a page whose server was started anew is connected again and looks alive, but the new server knows none of its
parts and answers no click until it is loaded again. The page does that itself.
"""

from __future__ import annotations

import streamlit as st

from pages.parts import client, index

WORDS = "The dashboard's server is not answering. Runs do not need it. This page reconnects by itself."

_away = st.components.v2.component("tilewright_away", html="<span></span>", js=client.read("status/away.js"))


def draw() -> None:
    """Shows nothing while the server answers."""
    _away(data={"words": WORDS, "server": index.opened_at()}, key="away")
