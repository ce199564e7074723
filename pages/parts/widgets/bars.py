"""Small horizontal bars with their figures, one per line, with a mark where another kernel stands. Knows no run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import streamlit as st

from pages.parts import client

_bars = st.components.v2.component(
    "tilewright_bars",
    html='<p class="title"></p><ul></ul><p class="legend"></p>',
    css=client.read("widgets/bars.css"),
    js=client.read("widgets/bars.js"),
)


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar; `share` and `before` are 0..1 of the bar's room. `is_limit` marks the one that limits the others."""

    label: str
    share: float
    text: str
    before: float | None = None
    note: str = ""
    is_limit: bool = False


def draw(title: str, bars: Sequence[Bar], legend: str, key: str) -> None:
    """Draw them; `legend` says what the mark is, empty where there is none."""
    _bars(data={"title": title, "bars": [asdict(bar) for bar in bars], "legend": legend}, key=client.key(key))
