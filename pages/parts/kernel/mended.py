"""How a failed kernel was mended: the first correct kernel made from it by repairs, and what led there."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.parts import wording
from pages.parts.kernel import same_error, story
from storage.queries import AttemptRow
from storage.records import Verdict

MOST = 8


def draw(run_id: str, candidate: AttemptRow, attempts: Sequence[AttemptRow]) -> None:
    """The mender with its diff and patch, then the same error elsewhere."""
    if candidate.verdict in (None, Verdict.PASSED):
        return
    found = story.mended_by(candidate, attempts)
    st.markdown("## Repair")
    if found is None:
        st.caption(_not_mended(candidate, attempts))
    else:
        st.markdown(f"Repaired in **kernel {found.number}**: {wording.plain(found.summary)}")
        with st.container(horizontal=True, gap="small"):
            _link(run_id, found, f"Kernel {found.number}", "", {})
            _link(run_id, found, "Diff to this kernel", "Diff", {"against": candidate.candidate_id})
            _link(run_id, found, "Patch", "Diagnosis and patch", {})
    _elsewhere(run_id, candidate, same_error.alike(candidate, attempts))


def _not_mended(candidate: AttemptRow, attempts: Sequence[AttemptRow]) -> str:
    if any(one.parent_id == candidate.candidate_id for one in attempts):
        return "Repairs were tried; none is correct."
    return "No repair tried yet."


def _elsewhere(run_id: str, candidate: AttemptRow, found: Sequence[AttemptRow]) -> None:
    st.markdown("## Other kernels with this error")
    if told := same_error.sentence(candidate, found):
        st.markdown(told)
        others = [one for one in found if one.candidate_id != candidate.candidate_id]
        with st.container(horizontal=True, gap="small"):
            for one in others[:MOST]:
                _link(run_id, one, f"Kernel {one.number}, depth {one.depth}", "Errors", {})
        if len(others) > MOST:
            st.caption(f"showing {MOST} of {len(others)}")
    else:
        st.caption("None in this run (messages that differ only in numbers count as the same).")


def _link(run_id: str, one: AttemptRow, label: str, tab: str, more: dict[str, str]) -> None:
    target = {"run": run_id, "candidate": one.candidate_id} | ({"tab": tab} if tab else {}) | more
    st.page_link("candidate.py", label=label, query_params=target, width="content")
