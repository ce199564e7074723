"""The whole source of a kernel, highlighted, with a download."""

from __future__ import annotations

import streamlit as st

from pages.parts import texts
from pages.parts.widgets import code
from storage.queries import CandidateRow

MOST_LINES = 4_000


def draw(run_id: str, candidate: CandidateRow) -> None:
    """Source with line numbers."""
    found = texts.read(run_id, candidate.source_blob)
    if found.is_gone:
        texts.say_gone(found, "source")
        return
    text = found.text
    count = len(text.splitlines())
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "Download", text, file_name=f"{run_id}-{candidate.candidate_id}.py", mime="text/x-python",
            icon=":material/download:", on_click="ignore",
        )  # fmt: skip
        st.caption(f"{count:,} lines · a Python module that defines `ModelNew`")
    if count > MOST_LINES:
        st.info(f"Showing {MOST_LINES:,} of {count:,} lines; download it to see all.", icon=":material/content_cut:")
    lines = code.lines("\n".join(text.split("\n", MOST_LINES)[:MOST_LINES]))
    code.draw("Kernel source", lines, key=f"source:{candidate.candidate_id}")
