"""A box for the name of a model: those known here, or any other that is typed in."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator


def draw(place: DeltaGenerator, label: str, key: str, known: Sequence[str], now: str) -> str:
    """The name chosen or typed."""
    names = list(dict.fromkeys([now, *known]))
    chosen = place.selectbox(
        label, names, key=key, accept_new_options=True, help="choose a model, or type a model name of your endpoint"
    )
    return str(chosen or now).strip()


def container() -> DeltaGenerator:
    """Where to draw it without columns."""
    return st.container()
