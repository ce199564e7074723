"""Diff of a kernel to its parent, or to any other kernel of the run."""

from __future__ import annotations

import streamlit as st

from pages.parts import diff, index, texts, wording
from storage import queries
from storage.queries import AttemptRow, CandidateRow


def draw(run_id: str, candidate: CandidateRow) -> None:
    """Choose the other side, then show the diff."""
    others = [a for a in queries.attempts(index.current(), run_id) if a.candidate_id != candidate.candidate_id]
    if not others:
        st.caption(
            "This is the only kernel so far: there is nothing to compare it with. Its source is in the next tab."
        )
        return
    start = next((i for i, a in enumerate(others) if a.candidate_id == candidate.parent_id), 0)
    other = st.selectbox(
        "Compare with", others, index=start, format_func=lambda a: label(a, candidate),
        key=f"compare:{candidate.candidate_id}", width=520,
    )  # fmt: skip
    old, new = texts.source(run_id, other.source_blob), texts.source(run_id, candidate.source_blob)
    names = (label(other, candidate), f"kernel {candidate.number}")
    diff.draw(old, new, names, key=f"diff:{candidate.candidate_id}:{other.candidate_id}")


def label(a: AttemptRow, candidate: CandidateRow) -> str:
    """One line for one kernel."""
    relation = (
        " (parent)"
        if a.candidate_id == candidate.parent_id
        else " (base)"
        if a.candidate_id == candidate.base_id
        else ""
    )
    best = " (best)" if a.is_best else ""
    outcome = (
        wording.speedup(a.speedup, a.noise)
        if a.speedup
        else wording.VERDICT_NAME[a.verdict]
        if a.verdict
        else "not judged"
    )
    return f"kernel {a.number}{relation}{best} · depth {a.depth} · {outcome}"
