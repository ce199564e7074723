"""The kernel class of a run: what it is now and what another one changes."""

from __future__ import annotations

import streamlit as st

from pages.parts import wording
from pages.parts.steering import dialogs, steer
from storage.queries import RunRow
from storage.records import CommandKind, KernelClass


@st.dialog("Kernel class", icon=":material/category:", on_dismiss=dialogs.close)
def dialog(run: RunRow) -> None:
    """Choose it, see what follows, confirm."""
    st.markdown(f"Now: **{wording.CLASS_NAME[run.kernel_class]}**")
    others = [one for one in KernelClass if one is not run.kernel_class]
    chosen = st.selectbox("Change to", others, format_func=wording.CLASS_NAME.__getitem__, key="class_to")
    st.info(
        f"From the next step on, prompts use the guide for {wording.CLASS_NAME[chosen]}, and profiles on auto follow "
        "this class. Existing kernels and results stay as they are.",
        icon=":material/visibility:",
    )
    if dialogs.buttons("class", "Change the class", ":material/category:"):
        steer.send(run.run_id, CommandKind.SET_CLASS, chosen)
        dialogs.leave()
