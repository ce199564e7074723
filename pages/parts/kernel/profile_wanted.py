"""What stands in the place of a profile that is not there: why, when one is taken, and a button to have them taken."""

from __future__ import annotations

import streamlit as st

from pages.parts import access, index, run_state, wording
from pages.parts.steering import steer
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
        st.warning(f"Profiling failed: {wording.plain(failed.failure)}", icon=":material/warning:")
    switch = queries.switches(db, run_id).collect
    first = exposure.first_depth(run.kernel_class, run.depths, queries.asked_exposure(db, run_id))
    st.markdown(wording.plain(reason(candidate, switch, first, bool(failed))))
    if candidate.verdict in (None, Verdict.PASSED):
        _offer(run, switch)


def reason(candidate: CandidateRow, switch: Switch, first: int, has_failed: bool) -> str:
    """Why this kernel has no profile; `first` is the first depth whose prompt shows one."""
    if has_failed:
        return "Each kernel is profiled once; this one is not tried again."
    if candidate.verdict is None:
        return "Not judged yet: a kernel is profiled once it is correct and timed."
    if candidate.verdict is not Verdict.PASSED:
        outcome = wording.VERDICT_NAME[candidate.verdict]
        return f"Not profiled: only correct kernels are, and this one is not ({outcome})."
    match switch:
        case Switch.ON:
            return "Not profiled: this kernel was made before profiling was switched on."
        case Switch.OFF:
            return "Not profiled: “Collect profiles” is off in this run."
        case Switch.AUTO:
            when = (
                f"for the first kernel and then from depth {max(1, first - 1)} on" if first > 1 else "for every kernel"
            )
            return (
                f"Not profiled. On “auto”, profiles are collected {when}; this kernel belongs to depth "
                f"{candidate.depth}."
            )


def _offer(run: RunRow, switch: Switch) -> None:
    """The button, or why there is none."""
    if not access.may_steer():
        st.caption(":material/lock: This server is read-only and takes no commands.")
        return
    state = run_state.of(run)
    is_worked_on = not state.is_finished and run_state.has_engine(run.run_id)
    if not is_worked_on:
        st.caption(
            f"No engine is running (the run is {state}), so nothing can be profiled here. To profile this kernel by "
            "itself, download its source and run `python -m engine evaluate TASK FILE --profile`."
        )
        return
    if switch is Switch.ON:
        return
    steer.button(
        "Profile every correct kernel from now on", run.run_id, CommandKind.COLLECT, Switch.ON.value,
        icon=":material/query_stats:", help="sets “Collect profiles” to on, from the next step",
    )  # fmt: skip
    st.caption("From the next step on. Takes some seconds per kernel and costs nothing.")
