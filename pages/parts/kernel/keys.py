"""Keys of a kernel's page: numbers open tabs, j and k go to the next and previous kernel. Shows nothing."""

from __future__ import annotations

import streamlit as st

from pages.parts import client

TOLD = (
    "Keys: j and k for the next and previous kernel, 1 to {tabs} for the tabs, n and p for the next and previous hunk"
)

PAGE = "candidate"  # of the address

_keys = st.components.v2.component("tilewright_keys", html="<span hidden></span>", js=client.read("keys.js"))


def listen(links: dict[str, str]) -> None:
    """Keep what is pressed until the page is drawn. Draw it first. Each key of `links` stands for the link of that
    name."""
    _keys(data={"links": links, "shown": "", "page": PAGE}, key="keys_first")


def draw(links: dict[str, str], shown: str) -> None:
    """Act on what was pressed. `shown` changes with what the keys lead to. Draw it last: what it says is shown must be
    there by then."""
    _keys(data={"links": links, "shown": shown, "page": PAGE}, key="keys")
