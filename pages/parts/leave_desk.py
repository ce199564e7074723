"""Approving the next step: what is about to happen, and yes, no, or yes with a hint."""

from __future__ import annotations

import streamlit as st

from pages.parts import index, steer, steering_access, wording
from storage import queries
from storage.attendance import AskFirst, Fallback
from storage.queries import LeaveRow, RunRow
from storage.records import CommandKind, RunState, StepKind

ABOUT = {
    StepKind.SYNTHESISE: "The model is asked for a first kernel",
    StepKind.OPTIMISE: "The model is asked for one optimisation of",
    StepKind.DIAGNOSE: "The model is asked what is wrong with",
    StepKind.REPAIR: "The model is asked to repair",
    StepKind.COMPILE: "The compiler builds",
    StepKind.CHECK: "The checker compares with the reference",
    StepKind.TIME: "The clock is set on",
    StepKind.PROFILE: "The profiler looks at",
    StepKind.SUBMIT: "A kernel that was handed in is taken, made from",
}


def draw(run: RunRow, state: RunState) -> None:
    """The desk while a step waits; nothing at all otherwise."""
    leave = queries.open_leave(index.current(), run.run_id)
    if leave is None or state is not RunState.WAITING or not steering_access.is_allowed():
        return
    with st.container(border=True, key="leave_desk"):
        st.markdown(f"## Approve this step? :gray[step {leave.step}, {leave.kind}, depth {leave.depth}]")
        st.markdown(wording.plain(_sentence(leave)))
        st.caption(_silence(leave))
        with st.form("leave_form", border=False, clear_on_submit=True):
            st.text_area("Hint for its prompt", key="leave_hint", height=68, max_chars=2000, placeholder="optional")
            yes, no = st.columns(2)
            with yes:
                st.form_submit_button(
                    "Approve", type="primary", icon=":material/check:", width="stretch", on_click=_approve,
                    args=(run.run_id, leave.step), key="leave_yes",
                )  # fmt: skip
            with no:
                st.form_submit_button(
                    "Skip", icon=":material/skip_next:", width="stretch", on_click=_skip,
                    args=(run.run_id, leave.step), key="leave_no",
                )  # fmt: skip


def _sentence(leave: LeaveRow) -> str:
    about = f" kernel {leave.number} ({leave.summary})" if leave.number else ""
    return f"{ABOUT[leave.kind]}{about}."


def _silence(leave: LeaveRow) -> str:
    skipped = "only the profile" if leave.kind is StepKind.PROFILE else "the depth"
    if leave.fallback is Fallback.NEVER:
        return f"Skipping leaves out {skipped}. The run waits as long as it takes."
    until = wording.clock(leave.at + leave.after_s)
    return f"Skipping leaves out {skipped}. Silence until about {until} means {leave.fallback}."


def rule_now(run_id: str) -> str:
    """The rule last put in force by a command, empty when there was none."""
    found = [c for c in queries.commands(index.current(), run_id) if c.kind is CommandKind.ASK_FIRST and c.effective_at]
    return str(AskFirst.parse(found[-1].argument)) if found else ""


def _approve(run_id: str, step: int) -> None:
    if hint := str(st.session_state.get("leave_hint", "")).strip():
        steer.send(run_id, CommandKind.HINT, hint)
    steer.send(run_id, CommandKind.APPROVE, str(step))


def _skip(run_id: str, step: int) -> None:
    steer.send(run_id, CommandKind.SKIP, str(step))
