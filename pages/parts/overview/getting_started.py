"""What the list says to somebody without a run of their own: what a run is, and three ways to begin."""

from __future__ import annotations

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import access, index, run_state, wording
from storage import codec
from storage.home import home
from storage.index import queries
from storage.run import folder

ABOUT = (
    "A run takes one PyTorch module and searches for a faster kernel: the model writes, Tilewright compiles, checks "
    "and times, and the best correct kernel is yours to download."
)


def draw() -> None:
    """Three ways side by side; one below the other where it is narrow."""
    db = index.current()
    demo = queries.demo_run(db)
    with st.container(border=True, key="getting_started"):
        title = "No runs yet" if not queries.count_runs(db) else "Begin a run of your own"
        st.header(f":material/monitoring: {title}")
        st.markdown(ABOUT)
        columns = st.columns(3, gap="medium")
        with columns[0]:
            st.markdown("### Watch the demo")
            st.caption(
                "A matrix product on this machine's processor. Replies are recorded; kernels are really measured."
            )
            _demo(demo)
        with columns[1]:
            may_start = access.may_steer()
            st.markdown("### Start your own" if may_start else "### Start a run")
            where = "" if may_start else "This server is read-only. "
            st.caption(f"One of the shipped tasks or a module of yours. {where}From a terminal: `{COMMAND}`")
            if may_start:
                st.page_link("new_run.py", label="Start the first run", icon=":material/add_circle:", width="content")
        with columns[2]:
            st.markdown("### Connect a model")
            st.caption(
                "OpenAI, vLLM, Ollama or any gateway that speaks OpenAI's protocol. Without one, replies are recorded."
            )
            st.page_link("models.py", label="How to connect one", icon=":material/forum:", width="content")
        st.caption(f"Runs are kept in `{home()}`.")


COMMAND = "python -m engine run swish"


def _demo(demo: str | None) -> None:
    if demo:
        st.page_link(
            "run.py", label="Open the demo run", icon=":material/play_circle:", query_params={"run": demo},
            width="content",
        )  # fmt: skip
    elif not access.may_steer():
        st.caption("No demo run here.")
    elif _is_demo_starting():
        st.caption(":material/hourglass_top: The demo run is starting.")
    elif st.button("Start the demo run", icon=":material/play_circle:", key="start_demo"):
        try:
            with st.spinner("Starting the engine"):
                started = supervisor.start(supervisor.demo_settings())
        except EngineError as error:
            st.error(wording.sentence(str(error)), icon=":material/error:")
            return
        st.switch_page("run.py", query_params={"run": started.run_id})


def _is_demo_starting() -> bool:
    """Whether an engine works on a demo run that is not in the index yet."""
    return any(_is_demo(run) for run in folder.all_runs() if run_state.has_engine(run.run_id))


def _is_demo(run: folder.RunFolder) -> bool:
    try:
        return run.read_settings().is_demo
    except (OSError, codec.DecodeError, UnicodeDecodeError):
        return False
