"""What stands in the place of a profile that is not there: why, when one is taken, and a button to have them taken."""

from __future__ import annotations

import streamlit as st

from pages.parts import index, pulse, steer, steering_access, wording
from storage import exposure, queries
from storage.queries import CandidateRow, ProfileRow, RunRow
from storage.records import CommandKind, Switch, Verdict


def draw(run_id: str, candidate: CandidateRow, failed: ProfileRow | None) -> None:
    """Say why, and offer what can be done now."""
    db = index.current()
    run = queries.run(db, run_id)
    if run is None:
        return
    if failed:
        st.warning(f"No profile could be had: {wording.plain(failed.failure)}", icon=":material/warning:")
    switch = queries.switches(db, run_id).collect
    first = exposure.first_depth(run.kernel_class, run.depths, queries.asked_exposure(db, run_id))
    st.markdown(wording.plain(reason(candidate, switch, first, bool(failed))))
    if candidate.verdict in (None, Verdict.PASSED):
        _offer(run, switch)


def reason(candidate: CandidateRow, switch: Switch, first: int, has_failed: bool) -> str:
    """Why this kernel has no profile; `first` is the first depth whose prompt shows one."""
    if has_failed:
        return "The profiler was asked once for this kernel and is not asked again."
    if candidate.verdict is None:
        return "Not judged yet: a kernel is profiled after it was found correct and was timed."
    if candidate.verdict is not Verdict.PASSED:
        outcome = wording.VERDICT_NAME[candidate.verdict]
        return f"Not profiled: it is not correct ({outcome}), and only a correct kernel is."
    match switch:
        case Switch.ON:
            return "Not profiled: every correct kernel is now, but this one was made before that was switched on."
        case Switch.OFF:
            return "Not profiled: collecting profiles is switched off in this run."
        case Switch.AUTO:
            when = (
                f"for the first kernel and then from depth {max(1, first - 1)} on" if first > 1 else "for every kernel"
            )
            return (
                f"Not profiled. On “auto” profiles are collected {when}, which is one depth before the model is first "
                f"shown one; this kernel is of depth {candidate.depth}."
            )


def _offer(run: RunRow, switch: Switch) -> None:
    """The button, or why there is none."""
    if not steering_access.is_allowed():
        st.caption(":material/lock: This server is read-only: it takes no commands.")
        return
    state = pulse.state_of(run)
    is_worked_on = not state.is_finished and pulse.has_engine(run.run_id)
    if not is_worked_on:
        st.caption(
            f"No engine works on this run (it is {state}), so nothing can be profiled in it. "
            "A kernel by itself can be: download its source and call `python -m engine evaluate TASK FILE --profile`."
        )
        return
    if switch is Switch.ON:
        return
    st.button(
        "Profile every correct kernel from now on", icon=":material/query_stats:", key="collect_now",
        on_click=steer.send, args=(run.run_id, CommandKind.COLLECT, Switch.ON.value),
        help="sends the command collect on; it takes effect at the engine's next step",
    )  # fmt: skip
    st.caption("Takes effect at the engine's next step. It costs some seconds per kernel and no money.")
