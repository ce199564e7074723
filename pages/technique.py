"""One technique of the knowledge base: what it is, where it helped and where not, and every attempt with its kernel."""

from __future__ import annotations

import streamlit as st

from pages.parts import change_token, index, wording
from pages.parts.knowledge import amend_dialogs, evidence_table, technique_story
from pages.parts.status import address, now
from pages.parts.steering import dialogs, steer
from storage.index.ingest import KNOWLEDGE
from storage.knowledge import browsing
from storage.knowledge.browsing import EvidenceFilter

name = st.query_params.get("technique", "")


@st.fragment
def live() -> None:
    """The page; drawn again when the knowledge base has news."""
    dialogs.sweep()
    now.watch([KNOWLEDGE], is_overview=False, token=change_token.of([KNOWLEDGE], is_overview=False))
    st.page_link("knowledge.py", label="Knowledge", icon=":material/arrow_back:", width="content")
    base = index.known()
    technique = base.techniques.get(name)
    if technique is None and not (name and browsing.count(base, EvidenceFilter(technique=name))):
        st.title("Technique", anchor=False)
        st.warning(f"No technique is called **{wording.plain(name) or 'nothing'}**.", icon=":material/search_off:")
        return
    st.title(wording.plain(name), anchor=False)
    if opened := technique_story.draw(technique) if technique else technique_story.draw_undefined(name):
        evidence_table.open_attempt(opened)
    steer.give_word_back()


address.confirm("technique", name)
live()
amend_dialogs.draw()
