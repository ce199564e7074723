"""Approving the next step: what is about to happen, and yes, no, or yes with a hint."""

from __future__ import annotations

import streamlit as st

from pages.parts import access, index, wording
from pages.parts.steering import steer
from storage import queries
from storage.attendance import AskFirst, Fallback
from storage.queries import LeaveRow, RunRow
from storage.records import CommandKind, RunState, StepKind

ABOUT = {
    StepKind.SYNTHESISE: "Ask the model for a first kernel",
    StepKind.OPTIMISE: "Ask the model to optimise",
    StepKind.DIAGNOSE: "Ask the model what is wrong with",
    StepKind.REPAIR: "Ask the model to repair",
    StepKind.COMPILE: "Compile",
    StepKind.CHECK: "Compare with the reference:",
    StepKind.TIME: "Time",
    StepKind.PROFILE: "Profile",
    StepKind.SUBMIT: "Take over the kernel you sent, based on",
}


def draw(run: RunRow, state: RunState) -> None:
    """The desk while a step waits; nothing at all otherwise."""
    leave = queries.open_leave(index.current(), run.run_id)
    if leave is None or state is not RunState.WAITING or not access.may_steer():
        return
    with st.container(border=True, key="leave_desk"):
        st.markdown(f"## Approve this step? :gray[step {leave.step}, {leave.kind}, depth {leave.depth}]")
        st.markdown(wording.plain(_sentence(leave)))
        st.caption(_silence(leave))
        with st.form(f"leave_form:{run.run_id}:{leave.step}", border=False, clear_on_submit=True):
            st.text_area(
                "Hint for the next prompt", key="leave_hint", height=68, max_chars=2000, placeholder="optional"
            )
            yes, no = st.columns(2)
            with yes:
                st.form_submit_button(
                    "Approve", type="primary", icon=":material/check:", width="stretch", on_click=_approve,
                    args=(run.run_id, leave.step),
                )  # fmt: skip
            with no:
                st.form_submit_button(
                    "Reject", icon=":material/close:", width="stretch", on_click=_skip,
                    args=(run.run_id, leave.step),
                )  # fmt: skip


def _sentence(leave: LeaveRow) -> str:
    about = f" kernel {leave.number} ({leave.summary})" if leave.number else ""
    return f"{ABOUT[leave.kind]}{about}."


def _silence(leave: LeaveRow) -> str:
    skipped = "skips only this profile" if leave.kind is StepKind.PROFILE else "abandons the depth"
    if leave.fallback is Fallback.NEVER:
        return f"Rejecting {skipped}. The run waits until you decide."
    until = wording.clock(leave.at + leave.after_s)
    done = "approved" if leave.fallback is Fallback.YES else "rejected"
    return f"Rejecting {skipped}. If nobody responds, the step is {done} at about {until}."


def rule_now(run_id: str) -> AskFirst | None:
    """The rule last put in force by a command, None when there was none."""
    found = [c for c in queries.commands(index.current(), run_id) if c.kind is CommandKind.ASK_FIRST and c.effective_at]
    return AskFirst.parse(found[-1].argument) if found else None


def _approve(run_id: str, step: int) -> None:
    if hint := str(st.session_state.get("leave_hint", "")).strip():
        steer.send(run_id, CommandKind.HINT, hint)
    steer.send(run_id, CommandKind.APPROVE, str(step))


def _skip(run_id: str, step: int) -> None:
    steer.send(run_id, CommandKind.SKIP, str(step))
