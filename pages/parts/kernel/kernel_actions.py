"""What a person can do with one kernel: go on from it, make it the base, edit it by hand."""

from __future__ import annotations

import streamlit as st

from pages.parts import access, run_state
from pages.parts.steering import dialogs
from pages.parts.steering.dialogs import Dialog
from storage.queries import CandidateRow, RunRow
from storage.records import Verdict


def draw(run: RunRow, candidate: CandidateRow) -> None:
    """A row of buttons; nothing on a read-only server, nor for a replay."""
    if run.replay_of or not access.may_steer():
        return
    state = run_state.of(run)
    with st.container(horizontal=True, key="kernel_actions"):
        _opens(Dialog.TRY_AGAIN, "Go back or fork from here", ":material/undo:", run, candidate)
        is_live = not state.is_over
        if is_live and candidate.verdict is Verdict.PASSED:
            _opens(Dialog.BASE, "Use as base kernel", ":material/keep:", run, candidate)
        if st.button("Edit by hand", icon=":material/edit:", key=f"kernel_edit:{run.run_id}"):
            target = {"run": run.run_id, "candidate": candidate.candidate_id}
            st.switch_page("edit.py", query_params=target)


def _opens(dialog: Dialog, label: str, icon: str, run: RunRow, candidate: CandidateRow) -> None:
    st.button(
        label, icon=icon, key=f"kernel_{dialog}:{run.run_id}:{candidate.candidate_id}", on_click=dialogs.ask,
        args=(dialog, run.run_id, candidate.candidate_id),
    )  # fmt: skip
