"""Lanes over time: who had the work from when to when, each bar with what it was. Knows no run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import streamlit as st

from pages.parts import client

_lanes = st.components.v2.component(
    "tilewright_lanes",
    html='<div class="strip" role="img"></div><p class="about" aria-hidden="true"></p>',
    css=client.read("widgets/lanes.css"),
    js=client.read("widgets/lanes.js"),
)


@dataclass(frozen=True, slots=True)
class LaneRow:
    """One lane; a bar is (where it begins, its length, its tone, what it was), the first two 0..1 of the whole. A tone
    is a class of lanes.css."""

    name: str
    bars: tuple[tuple[float, float, str, str], ...]


def draw(name: str, lanes: Sequence[LaneRow], ticks: Sequence[tuple[float, str]], has_idle: bool, key: str) -> None:
    """Draw them one below the other over one axis. `name` is what a reader hears; `ticks` are (place 0..1, text)."""
    shown = {"name": name, "lanes": [asdict(row) for row in lanes], "ticks": list(ticks), "has_idle": has_idle}
    _lanes(data=shown, key=client.key(key))
