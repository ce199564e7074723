"""Presenting: with `present=1` in its address a page has large type and neither menu nor side panels; Esc ends it."""

from __future__ import annotations

import streamlit as st

from pages.parts import client

NAME = "present"

_presenting = st.components.v2.component(
    "tilewright_presenting", html="<span></span>", js=client.read("status/presenting.js")
)


def draw() -> None:
    """Give the document its class, or take it away; shows nothing."""
    _presenting(data={"is_on": bool(kept())}, key="presenting", on_left_change=_leave)


def kept() -> dict[str, str]:
    """What the address of the next page needs, so that it is presented too."""
    return {NAME: "1"} if st.query_params.get(NAME) == "1" else {}


def _leave() -> None:
    st.query_params.pop(NAME, None)
