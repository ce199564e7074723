"""The paragraph that opens a kernel's page: why it is as fast as it is."""

from __future__ import annotations

import streamlit as st

from pages.parts import index, wording
from pages.parts.kernel import metric_sense, story
from pages.parts.kernel.story import Facts
from storage import queries
from storage.queries import CandidateRow


def draw(run_id: str, candidate: CandidateRow) -> None:
    """Sentences of facts, each of which the tabs below show."""
    told = wording.plain(" ".join(story.sentences(gather(run_id, candidate))))
    if candidate.summary:
        summary = wording.plain(candidate.summary).strip()
        told = told.replace(summary, f"**{summary}**", 1) if summary else told
    st.markdown(told)


def gather(run_id: str, candidate: CandidateRow) -> Facts:
    """Everything that the story of a kernel is told from."""
    db = index.current()
    attempts = index.attempts(run_id)
    numbers = {a.candidate_id: a for a in attempts}
    changes = queries.metric_changes(db, run_id, candidate.candidate_id)
    previous = next((c.previous_id for c in changes if c.previous_id), None)
    mender = story.mended_by(candidate, attempts)
    return Facts(
        candidate,
        numbers.get(candidate.parent_id or ""),
        story.ancestor(candidate, attempts),
        numbers[previous].number if previous in numbers else None,
        metric_sense.weighed(changes),
        mender.number if mender else None,
    )
