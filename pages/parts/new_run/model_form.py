"""How the model of a new run is asked: the options most people need, and lines for one role or the rest."""

from __future__ import annotations

import streamlit as st

from engine import supervisor
from pages.parts import wording
from storage.models import NAMES, ModelRole, Options, PatchForm, read_options

EFFORTS = ("endpoint default", "minimal", "low", "medium", "high")
EXAMPLE = "diagnoser.model=a-smaller-model\nrepairer.temperature=0.2"


def draw(model: str) -> Options:
    """The options asked for; a line that makes no sense is said to be so, and no run can be started with it."""
    if note := supervisor.price_note(model):
        st.caption(f":material/payments: {wording.plain(note)}")
    with st.expander("Model options: reasoning effort, edit format, roles", icon=":material/psychology:"):
        left, middle, right = st.columns(3)
        effort = left.selectbox("Reasoning effort", EFFORTS, key="effort")
        form = middle.selectbox("Edit format", [str(one) for one in PatchForm], key="patch_form")
        warmth = right.number_input(
            "Temperature", 0.0, 2.0, value=None, step=0.1, key="temperature", placeholder="not set"
        )
        lines = st.text_area(
            "Further options, one per line", key="model_options", height=110, placeholder=EXAMPLE,
            help=f"[ROLE.]NAME=VALUE. Roles: {', '.join(ModelRole)}. Names: {', '.join(NAMES)}. Do not write a key "
            "here: key_variable names the environment variable that holds it.",
        )  # fmt: skip
    chosen = [] if effort == EFFORTS[0] else [f"reasoning_effort={effort}"]
    chosen += [] if warmth is None else [f"temperature={warmth}"]
    chosen += [] if form == PatchForm.TEXT else [f"patches={form}"]
    try:
        return read_options("\n".join([*chosen, lines]))
    except ValueError as error:
        st.error(wording.plain(str(error)), icon=":material/error:")
        st.stop()
