"""One state of the knowledge base: how it is recognised, what is known to help there, and every attempt from it."""

from __future__ import annotations

import streamlit as st

from pages.parts import change_token, index, wording
from pages.parts.knowledge import amend_dialogs, evidence_table, state_story
from pages.parts.status import address, now
from pages.parts.steering import dialogs, steer
from storage.index.ingest import KNOWLEDGE

name = st.query_params.get("state", "")


@st.fragment
def live() -> None:
    """The page; drawn again when the knowledge base has news."""
    dialogs.sweep()
    now.watch([KNOWLEDGE], is_overview=False, token=change_token.of([KNOWLEDGE], is_overview=False))
    st.page_link("knowledge.py", label="Knowledge", icon=":material/arrow_back:", width="content")
    state = index.known().states.get(name)
    if state is None:
        st.title("State", anchor=False)
        st.warning(f"No state is called **{wording.plain(name) or 'nothing'}**.", icon=":material/search_off:")
        return
    st.title(wording.plain(state.name), anchor=False)
    technique, attempt = state_story.draw(state)
    if technique:
        st.switch_page("technique.py", query_params={"technique": technique})
    if attempt:
        evidence_table.open_attempt(attempt)
    steer.give_word_back()


address.confirm("kernel_state", name)
live()
amend_dialogs.draw()
