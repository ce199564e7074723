"""What a person can do with one kernel: go on from it, make it the base, edit it by hand."""

from __future__ import annotations

import streamlit as st

from pages.parts import base_dialog, index, pulse, steer, steering_access, try_again
from storage import queries
from storage.queries import CandidateRow, RunRow
from storage.records import RunState, Verdict


def draw(run: RunRow, candidate: CandidateRow) -> None:
    """A row of buttons; nothing on a read-only server."""
    steer.give_word_back()
    if not steering_access.is_allowed():
        return
    state = pulse.state_of(run)
    with st.container(horizontal=True, key="kernel_actions"):
        if st.button("Try again from here", icon=":material/undo:", key="kernel_try"):
            try_again.dialog(run, state, candidate.candidate_id)
        is_live = not (state.is_finished or state is RunState.LOST)
        if (
            is_live
            and candidate.verdict is Verdict.PASSED
            and st.button("Make it the base", icon=":material/keep:", key="kernel_base")
        ):
            base_dialog.dialog(run, queries.orders(index.current(), run.run_id), candidate.candidate_id)
        if st.button("Edit by hand", icon=":material/edit:", key="kernel_edit"):
            target = {"run": run.run_id, "candidate": candidate.candidate_id}
            st.switch_page("edit.py", query_params=target)
