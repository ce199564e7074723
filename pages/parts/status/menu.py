"""What a browser does on every page: the menu on a narrow screen, where it lies over the page; one step back for each
step forth; and the manners of dialogs."""

from __future__ import annotations

import streamlit as st

from pages.parts import client

_menu = st.components.v2.component(
    "tilewright_menu", html="<span></span>", js=client.read("steering/manners.js") + client.read("status/menu.js")
)


def draw() -> None:
    """Listen; shows nothing."""
    _menu(key="menu")
