"""What can be done with a run as a whole: report, replay, comparison, recording, link."""

from __future__ import annotations

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import access, index, wording
from pages.parts.report.report_run import file_name, run_report
from pages.parts.steering import dialogs
from pages.parts.steering.dialogs import Dialog
from storage.queries import RunRow
from storage.records import RunState

PACES: dict[str, float | None] = {"in two minutes": None, "60×": 60.0, "10×": 10.0, "1×": 1.0}
READ_ONLY = "this server is read-only and starts nothing"


def draw(run: RunRow, state: RunState) -> None:
    """The menu; what is in it is made only while it is open."""
    menu = st.popover(
        "Share", icon=":material/ios_share:", key=f"run_menu-{run.run_id}", on_change="rerun", width="content"
    )
    if not menu.open:
        return
    with menu:
        _report(run)
        original = run.replay_of or run.run_id
        st.page_link(
            "compare.py", label="Compare with other runs", icon=":material/stacked_line_chart:",
            query_params={"runs": original},
        )  # fmt: skip
        if not run.replay_of:
            _replay(run, state)
            _recording(run)
        st.caption("Link to this page")
        st.code(_address(run), language=None, wrap_lines=True)


def _report(run: RunRow) -> None:
    """Trap: the file is made in a thread of its own, where nothing of the page may be used."""
    db = index.current()
    st.download_button(
        "Download report", lambda: run_report(db, run.run_id), file_name=file_name(run), mime="text/html",
        icon=":material/description:", key="report", on_click="ignore", type="tertiary",
        help="one HTML file with curve, kernels, diffs and checks; opens without a server or network",
    )  # fmt: skip


def _replay(run: RunRow, state: RunState) -> None:
    why = "" if state.is_over else "the run has not ended yet"
    why = why if access.may_steer() else READ_ONLY
    pace = st.segmented_control("Replay", list(PACES), default="in two minutes", required=True, key="replay_pace")
    st.caption(":material/info: Plays the run back from its journal. Playback only; no cost.")
    if st.button(
        "Start replay", icon=":material/replay:", key=f"start_replay:{run.run_id}", disabled=bool(why), help=why or None
    ):
        _start(run, PACES[str(pace)])


def _start(run: RunRow, speed: float | None) -> None:
    try:
        with st.spinner("Starting the replay"):
            folder = supervisor.start_replay(run.run_id, speed)
    except (EngineError, OSError) as error:
        st.error(wording.plain(str(error)), icon=":material/error:")
        return
    st.switch_page("run.py", query_params={"run": folder.run_id})


def _recording(run: RunRow) -> None:
    """The replies as a file; what it reads may be long, so a read-only server does not offer it."""
    why = "" if run.model_calls else "no model reply yet"
    why = why if access.may_steer() else READ_ONLY
    st.button(
        "Save as recording", icon=":material/save:", key=f"save_recording:{run.run_id}", type="tertiary",
        disabled=bool(why), help=why or "the model replies of this run; a run from them needs no API key",
        on_click=dialogs.ask, args=(Dialog.RECORDING, run.run_id),
    )  # fmt: skip


def _address(run: RunRow) -> str:
    here = str(st.context.url or "").partition("?")[0]
    return f"{here}?run={run.run_id}"
