"""Name and state of a run, and the way back when nobody works on it."""

from __future__ import annotations

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import access, index, wording
from pages.parts.run import key_help, run_menu
from pages.parts.status import alerts, damaged, pinned_snapshot, provenance
from pages.parts.steering import steer
from storage import folder, queries
from storage.queries import RunRow
from storage.records import RunState


def draw(run: RunRow, state: RunState) -> None:
    """Title, state, what is run on what; alerts, freeze and keys; a resume button where work was left."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.page_link("overview.py", label="Runs", icon=":material/arrow_back:", width="content")
        st.title(run.title.capitalize(), anchor=False, width="content")
        provenance.replay_badge(run)
        if run.is_demo:
            st.badge(
                "demo", color="gray", help="model replies are recorded; kernels are really built, checked and timed"
            )
        provenance.draw_fork(run)
        _divergence(run)
        st.caption(
            f"{wording.CLASS_NAME[run.kernel_class]} · {run.toolchain} · {wording.plain(run.model)}", width="content"
        )
        problem = _offer_resume(run, state) if access.may_steer() else ""
        st.space("stretch")
        alerts.draw(run, state)
        pinned_snapshot.button(run.run_id)
        key_help.draw()
        run_menu.draw(run, state)
    # Trap: without a container that is always there, a banner that comes or goes makes the browser forget the zoom.
    with st.container():
        provenance.replay_banner(run, state)
        if problem:
            st.error(wording.plain(problem), icon=":material/error:")
        damaged.banner(run.run_id)
        _alert(run, state)


def _where(run: RunRow) -> str:
    step = queries.current_step(index.current(), run.run_id)
    if step is None and run.depth is None:
        return " before its first step"
    return f" at step {step.step}" if step else ""


def _alert(run: RunRow, state: RunState) -> None:
    """What a person has to know or do before anything else."""
    if state is RunState.WAITING:
        st.warning(f"**Waiting for you.** {wording.plain(run.waiting_reason)}", icon=":material/schedule:")
    elif state is RunState.FAILED:
        st.error(f"**The engine failed.** {wording.plain(run.state_reason)}", icon=":material/error:")
    found = damaged.of(run.run_id)
    if state is RunState.LOST and not found.is_cut:
        rest = " Completed steps are saved; resume to continue." if found.can_resume else ""
        st.warning(f"**The run crashed{_where(run)}.**{rest}", icon=":material/warning:")


def _divergence(run: RunRow) -> None:
    """That a replay has left its recording, and what was done about it."""
    found = queries.divergences(index.current(), run.run_id)
    if found:
        count = f" {len(found)} times so far, last at step {found[-1].step}." if len(found) > 1 else ""
        told = f"This run has left its recording. {wording.plain(found[-1].reason)}{count}"
        st.badge("left its recording", icon=":material/alt_route:", color="blue", help=told)


def _offer_resume(run: RunRow, state: RunState) -> str:
    """A button where an engine left before its work was done; what went wrong with it, if anything."""
    if state not in (RunState.LOST, RunState.STOPPED, RunState.FAILED) or not damaged.of(run.run_id).can_resume:
        return ""
    if not st.button("Resume run", icon=":material/play_arrow:", type="primary", key=f"resume:{run.run_id}"):
        return ""
    try:
        with st.spinner("Starting the engine"):
            supervisor.resume(folder.find_run(run.run_id))
    except (EngineError, FileNotFoundError) as error:
        return str(error)
    steer.say("Run resumed.")
    return ""
