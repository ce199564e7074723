"""Limits for common cases, as a starting point: every field can still be changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st


@dataclass(frozen=True, slots=True)
class Preset:
    """Limits that the form begins with; None is the field's own default."""

    name: str = ""
    depths: int | None = None
    calls: int | None = None
    cost: float | None = None
    minutes: int | None = None
    target: float | None = None


PRESETS: Mapping[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset("quick look", depths=3, calls=15),
        Preset("standard", depths=10, calls=60),
        Preset("thorough", depths=20, calls=160),
        Preset("at most $2", depths=10, cost=2.0),
        Preset("at most 15 minutes", depths=20, minutes=15),
        Preset("until 2× faster", depths=20, target=2.0),
    )
}


def draw() -> Preset:
    """One of them, or none."""
    name = st.pills("Presets", list(PRESETS), key="preset", help="fills the limits below; change what you like")
    return PRESETS[name] if name else Preset()
