"""Source lines with their numbers, coloured, some of them marked. Knows no run."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.parts import client
from pages.parts.widgets import code
from pages.parts.widgets.code import Line

_source = st.components.v2.component(
    "tilewright_source",
    html='<pre tabindex="0"></pre>',
    css=client.read("code.css") + client.read("source.css"),
    js=client.read("source.js"),
)


def draw(name: str, lines: Sequence[Line], key: str, first: int = 1, marked: Sequence[int] = ()) -> None:
    """`name` is what a reader hears; `marked` are line numbers, counted as the lines are from `first` on."""
    shown = [code.as_html(line) for line in lines]
    _source(data={"name": name, "lines": shown, "first": first, "marked": list(marked)}, key=key)
