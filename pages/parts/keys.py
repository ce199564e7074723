"""Keys of a kernel's page: numbers open tabs, j and k go to the next and previous kernel. Shows nothing."""

from __future__ import annotations

import streamlit as st

from pages.parts import client

TOLD = (
    "Keys: j and k for the next and previous kernel, 1 to {tabs} for the tabs, n and p for the next and previous hunk"
)

_keys = st.components.v2.component("tilewright_keys", html="<span hidden></span>", js=client.read("keys.js"))


def draw(next_name: str, previous_name: str) -> None:
    """Listen. The names are those of the links that j and k stand for."""
    _keys(data={"links": {"j": next_name, "k": previous_name}}, key="keys")
