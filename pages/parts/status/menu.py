"""From page to page: the menu on a narrow screen, where it lies over the page, and the browser's way back."""

from __future__ import annotations

import streamlit as st

from pages.parts import client

_menu = st.components.v2.component("tilewright_menu", html="<span></span>", js=client.read("status/menu.js"))


def draw() -> None:
    """Close the menu when a page is chosen from it, and make each step one step back; shows nothing."""
    _menu(key="menu")
