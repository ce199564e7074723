"""That a run is only a replay of another one: said on every page that shows it."""

from __future__ import annotations

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import steering_access, wording
from storage import folder
from storage.codec import DecodeError
from storage.queries import RunRow
from storage.records import RunState


def badge(run: RunRow) -> None:
    """The word beside the run's name."""
    if run.replay_of:
        st.badge("replay", icon=":material/replay:", color="violet", help=f"of run {run.replay_of}")


def banner(run: RunRow, state: RunState) -> None:
    """What is told, how fast, the way to the run itself, and, once it is over, the way to be rid of the replay."""
    if not run.replay_of:
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="replay_banner"):
        st.markdown(
            f":material/replay: **This is a replay** of a recorded run{_pace(run.run_id)}. Playback only; no cost.",
            width="stretch",
        )
        st.page_link(
            "run.py", label="Original run", icon=":material/arrow_forward:", query_params={"run": run.replay_of},
            width="content",
        )  # fmt: skip
        may_delete = state.is_over and steering_access.is_allowed()
        if may_delete and st.button("Delete replay", icon=":material/delete:", key=f"delete:{run.run_id}"):
            _delete(run)


def _pace(run_id: str) -> str:
    try:
        speed = folder.find_run(run_id).read_settings().replay_speed
    except (FileNotFoundError, DecodeError):
        return ""
    return " at original speed" if speed == 1 else f" at {wording.significant(speed, 2)}× speed"


def _delete(run: RunRow) -> None:
    try:
        supervisor.delete_replay(run.run_id)
    except (EngineError, OSError) as error:
        st.error(wording.plain(str(error)), icon=":material/error:")
        return
    st.switch_page("run.py", query_params={"run": run.replay_of or ""})
