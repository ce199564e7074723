"""The menu of pages on a narrow screen, where it lies over the page."""

from __future__ import annotations

import streamlit as st

from pages.parts import client

_menu = st.components.v2.component("tilewright_menu", html="<span></span>", js=client.read("status/menu.js"))


def draw() -> None:
    """Closes the menu when a page is chosen from it; shows nothing."""
    _menu(key="menu")
