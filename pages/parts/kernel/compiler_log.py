"""What the compiler said about a kernel, with the lines of its source that it named beside it."""

from __future__ import annotations

import streamlit as st

from pages.parts import texts, wording
from pages.parts.kernel import compiler_lines
from pages.parts.widgets import code
from storage.queries import CandidateRow, EvaluationRow
from storage.records import Verdict

MOST_CHARACTERS = 200_000
MOST_EXCERPTS = 6


def draw(run_id: str, candidate: CandidateRow, evaluation: EvaluationRow) -> None:
    """The message left, the lines right, the whole log folded away."""
    if not (evaluation.diagnostics or evaluation.remarks or evaluation.log_blob):
        return
    is_refused = evaluation.compile_verdict is Verdict.REFUSED
    st.markdown("## Refused (message shown to the model)" if is_refused else "## Compiler")
    if evaluation.diagnostics:
        _message(run_id, candidate, evaluation.diagnostics)
    if evaluation.remarks:
        st.markdown("\n".join(f"- {wording.plain(remark)}" for remark in evaluation.remarks))
    if evaluation.log_blob:
        log = st.expander("Full build log", key=f"log:{candidate.candidate_id}", on_change="rerun")
        if log.open:
            with log:
                _whole(run_id, candidate, evaluation.log_blob)


def _message(run_id: str, candidate: CandidateRow, diagnostics: str) -> None:
    source = texts.read(run_id, candidate.source_blob)
    named = [] if source.is_gone else compiler_lines.named(diagnostics, source.text)
    if not named:
        st.code(diagnostics, language=None, wrap_lines=True)
        return
    left, right = st.columns(2, gap="medium")
    left.code(diagnostics, language=None, wrap_lines=True)
    with right:
        coloured = code.lines(source.text)
        found = compiler_lines.excerpts(named, source.text)
        for number, one in enumerate(found[:MOST_EXCERPTS]):
            lines = coloured[one.first - 1 : one.first - 1 + len(one.lines)]
            name = f"Source lines {one.first} to {one.first + len(one.lines) - 1}"
            code.draw(name, lines, f"named:{number}:{candidate.candidate_id}", one.first, one.marked)
        if len(found) > MOST_EXCERPTS:
            st.caption(f"showing {MOST_EXCERPTS} of {len(found)} places")


def _whole(run_id: str, candidate: CandidateRow, blob: str) -> None:
    found = texts.read(run_id, blob)
    if found.is_gone:
        texts.say_gone(found, "build log")
        return
    if len(found.text) > MOST_CHARACTERS:
        st.caption(f"Showing {MOST_CHARACTERS:,} of {len(found.text):,} characters; download it to see all.")
    name = f"{run_id}-{candidate.candidate_id}-build.log"
    st.download_button("Download", found.text, name, icon=":material/download:", on_click="ignore", key="whole_log")
    st.code(found.text[:MOST_CHARACTERS], language=None, height=420)
