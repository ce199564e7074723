"""What a page says while its server does not answer: that runs go on, and that nothing need be done here."""

from __future__ import annotations

import streamlit as st

from pages.parts import client

WORDS = "The dashboard's server is not answering. Runs do not need it. This page reconnects by itself."

_away = st.components.v2.component("tilewright_away", html="<span></span>", js=client.read("status/away.js"))


def draw() -> None:
    """Shows nothing while the server answers."""
    _away(data={"words": WORDS}, key="away")
