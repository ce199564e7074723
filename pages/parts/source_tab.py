"""The whole source of a kernel, highlighted, with a download."""

from __future__ import annotations

import streamlit as st

from pages.parts import client, code, texts
from storage.queries import CandidateRow

_source = st.components.v2.component(
    "tilewright_source",
    html='<pre tabindex="0"\n aria-label="Kernel source"></pre>',
    css=client.read("code.css") + client.read("source.css"),
    js=client.read("source.js"),
)


def draw(run_id: str, candidate: CandidateRow) -> None:
    """Source with line numbers."""
    text = texts.source(run_id, candidate.source_blob)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "Download", text, file_name=f"{run_id}-{candidate.candidate_id}.py", mime="text/x-python",
            icon=":material/download:", on_click="ignore",
        )  # fmt: skip
        st.caption(
            f"{len(text.splitlines()):,} lines · a drop-in module that defines ModelNew · "
            f"`{candidate.source_blob[:12]}`"
        )
    _source(data={"lines": [code.as_html(line) for line in code.lines(text)]}, key=f"source:{candidate.candidate_id}")
