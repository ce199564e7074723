"""What a browser does on every page: the menu on a narrow screen, where it lies over the page; one step back for each
step forth; the manners of dialogs; and drafts that no field has told."""

from __future__ import annotations

import streamlit as st

from pages.parts import client

_menu = st.components.v2.component(
    "tilewright_menu",
    html="<span></span>",
    js="".join(map(client.read, ("steering/manners.js", "steering/unsent.js", "status/menu.js"))),
)


def draw() -> None:
    """Listen; shows nothing."""
    _menu(key="menu")
