"""One state: how it is recognised, the techniques that are known for it, and every attempt from it."""

from __future__ import annotations

import streamlit as st

from pages.parts import access, index, wording
from pages.parts.knowledge import evidence_table, known_tables
from pages.parts.knowledge.known_tables import Order
from pages.parts.steering import dialogs
from pages.parts.steering.dialogs import Dialog
from storage.knowledge import browsing
from storage.knowledge.browsing import EvidenceFilter, TechniqueFilter
from storage.knowledge.records import State


def draw_about(state: State) -> None:
    """How it is recognised, and what it stands beside."""
    st.markdown(wording.plain(state.about))
    words = [f"limited by {state.bottleneck}"]
    words += ["discovered in a run"] if state.is_discovered else []
    words += [f"often with: {', '.join(state.secondary)}"] if state.secondary else []
    st.caption(wording.plain(" · ".join(words)))
    if state.inherits:
        link = f"[{wording.plain(state.inherits)}]({known_tables.state_link(state.inherits)})"
        st.markdown(f"Takes over the techniques of {link}, at 0.8 of their gain and confidence.")
    if state.is_disabled:
        st.warning("This state is off: no run is told of it.", icon=":material/toggle_off:")


def draw_actions(state: State) -> None:
    """What a person may change, where people may."""
    if not access.may_steer():
        return
    with st.container(horizontal=True):
        st.button(
            "Edit", icon=":material/edit:", key=f"edit_state:{state.name}", on_click=dialogs.ask,
            args=(Dialog.KERNEL_STATE,), kwargs={"subject": state.name},
        )  # fmt: skip
        label, icon = ("Turn on", "toggle_on") if state.is_disabled else ("Turn off", "toggle_off")
        st.button(
            label, icon=f":material/{icon}:", key=f"switch_state:{state.name}", on_click=dialogs.ask,
            args=(Dialog.SWITCH,), kwargs={"subject": f"state:{state.name}"},
        )  # fmt: skip


def draw(state: State) -> tuple[str | None, str | None]:
    """Tables and picture; the technique or else the attempt that was opened just now, if any."""
    draw_about(state)
    draw_actions(state)
    st.markdown("## Techniques in this state")
    chosen = TechniqueFilter(state=state.name)
    techniques = known_tables.ordered(browsing.techniques(index.known(), chosen), Order.PROMISE)
    technique = None
    if techniques:
        technique = known_tables.draw_rows(techniques, chosen, "techniques_part")
    else:
        st.caption("No technique is known for this state yet.")
    st.markdown("## Attempts from this state")
    return technique, evidence_table.draw_attempts(
        EvidenceFilter(state=state.name), "state_story", nothing="Nothing was tried in this state yet."
    )
