"""Going on from an earlier kernel: in this run or as a new one, with other settings, seen before it is asked for."""

from __future__ import annotations

from typing import Any

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import access, diff, fork_form, index, kernel_choice, steer, texts, wording
from storage import folder, queries
from storage.queries import AttemptRow, RunRow
from storage.records import CommandKind, RunState, Switch

HERE, ANEW = "in this run", "as a new run"
PROFILES = {"as it is": None, "show them": Switch.ON, "never show them": Switch.OFF}


@st.dialog("Try again from here", width="large", icon=":material/undo:")
def dialog(run: RunRow, state: RunState, wanted: str = "") -> None:
    """Nothing is deleted, whichever way is chosen."""
    over = state.is_finished or state is RunState.LOST
    found = kernel_choice.targets(run)
    if over or (wanted and wanted not in {a.candidate_id for a in found}):
        found = queries.attempts(index.current(), run.run_id)[::-1] if over or not found else found
    if not found:
        st.info("There is no finished depth with a correct kernel to go back to yet.", icon=":material/hourglass_top:")
        return
    ways = [ANEW] if over else [HERE, ANEW]
    chosen = kernel_choice.draw("Kernel to go on from", found, "try_from", wanted)
    way = st.segmented_control("Where", ways, default=ways[0], key="try_where", required=True)
    profiles = st.segmented_control(
        "Profiles for the model", list(PROFILES), default="as it is", key="try_profiles", required=True,
        help="a profile tells the model what its kernel waits for; without one it works from the source alone",
    )  # fmt: skip
    hint = st.text_area("Hint for the next prompt", key="try_hint", height=68, max_chars=2000, placeholder="optional")
    shown = PROFILES[str(profiles)]
    fields = fork_form.draw(run, shown) if way == ANEW else {}
    st.info(preview(run, chosen, way == ANEW, shown), icon=":material/visibility:")
    if way == HERE:
        _change(run, chosen)
    _confirm(run, chosen, way == ANEW, shown, hint.strip(), fields)


def preview(run: RunRow, chosen: AttemptRow, is_new: bool, shown: Switch | None) -> str:
    """What will happen, and what is lost."""
    told = {
        None: "",
        Switch.ON: " with its profile shown to the model",
        Switch.OFF: " without showing the model a profile",
    }
    if is_new:
        return (
            f"A new run begins with kernel {chosen.number}. It is built, checked and timed again before it counts; "
            f"then depth 1 starts from it{told[shown]}. This run is not touched."
        )
    return (
        f"After the step in flight, the depth being worked on is given up and the next depth starts from kernel "
        f"{chosen.number}{told[shown]}. Nothing is lost: every kernel stays in the run."
    )


def _change(run: RunRow, chosen: AttemptRow) -> None:
    base = kernel_choice.current_base(run)
    if base is None or chosen.candidate_id == base.candidate_id:
        st.caption("This is the kernel the run stands on now.")
        return
    st.markdown(f"What changes between **kernel {base.number}**, the base now, and **kernel {chosen.number}**:")
    old, new = texts.source(run.run_id, base.source_blob), texts.source(run.run_id, chosen.source_blob)
    names = (f"kernel {base.number} (base now)", f"kernel {chosen.number} (go on from this)")
    with st.container(height=320, border=False):
        diff.draw(old, new, names, key="try_diff")


def _confirm(
    run: RunRow, chosen: AttemptRow, is_new: bool, shown: Switch | None, hint: str, fields: dict[str, Any]
) -> None:
    act = "Start a new run from" if is_new else "Go back to"
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button("Cancel", key="try_no"):
            st.rerun()
        if not st.button(f"{act} kernel {chosen.number}", type="primary", icon=":material/undo:", key="try_yes"):
            return
    if not is_new:
        _go_back(run, chosen, shown, hint)
        st.rerun()
    try:
        with st.spinner("Starting an engine"):
            made = supervisor.fork(folder.find_run(run.run_id), chosen.candidate_id, hint, access.person(), **fields)
    except (EngineError, FileNotFoundError) as error:
        st.error(wording.plain(str(error)), icon=":material/error:")
        return
    st.switch_page("run.py", query_params={"run": made.run_id})


def _go_back(run: RunRow, chosen: AttemptRow, shown: Switch | None, hint: str) -> None:
    if shown is not None:
        steer.send(run.run_id, CommandKind.EXPOSE, shown)
    if hint:
        steer.send(run.run_id, CommandKind.HINT, hint)
    steer.send(run.run_id, CommandKind.ROLL_BACK, chosen.candidate_id)
