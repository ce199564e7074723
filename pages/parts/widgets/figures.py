"""Figures as a definition list: a row of large ones, or a strip of small ones on one line. Knows no run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import streamlit as st

from pages.parts import client

_figures = st.components.v2.component(
    "tilewright_figure_row",
    html='<dl class="row"></dl>',
    css=client.read("widgets/figures.css"),
    js=client.read("widgets/figures.js"),
)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure; `note` stands small below it, `about` behind the pointer."""

    label: str
    value: str
    note: str = ""
    about: str = ""


def draw(name: str, items: Sequence[Figure], key: str, *, is_strip: bool = False) -> None:
    """`name` is what a reader hears of the row."""
    _figures(data={"name": name, "items": [asdict(item) for item in items], "is_strip": is_strip}, key=client.key(key))
