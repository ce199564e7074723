"""One run and the knowledge base: what it was told about which kernel, what it tried then, and what it added."""

from __future__ import annotations

import streamlit as st

from pages.parts import change_token, index
from pages.parts.knowledge import evidence_table, learning_table
from pages.parts.status import address, now
from storage.index import queries
from storage.index.ingest import KNOWLEDGE

run_id = st.query_params.get("run", "")


@st.fragment
def live() -> None:
    """The page; drawn again when the run or the knowledge base has news."""
    token = change_token.of([run_id, KNOWLEDGE], is_overview=False)
    run = queries.run(index.current(), run_id)
    if run is None:
        address.unknown_run(run_id, token)
        return
    now.watch([run_id, KNOWLEDGE], is_overview=False, token=token)
    with st.container(horizontal=True):
        st.page_link("knowledge.py", label="Knowledge", icon=":material/arrow_back:", width="content")
        st.page_link(
            "run.py", label=run.title, icon=":material/monitoring:", query_params={"run": run_id},
            width="content",
        )  # fmt: skip
    st.title("What this run learned", anchor=False)
    if opened := learning_table.draw_run(run_id):
        evidence_table.open_attempt(opened)


address.confirm("learning", run_id)
live()
