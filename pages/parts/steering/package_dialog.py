"""The package of a run's best kernel, or of what pays in a network: made when its dialog opens, then its card and the
archive, or why there is none. A reader who may not steer gets it too."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import streamlit as st

from engine import supervisor
from engine.errors import EngineError, EvaluationModeNeeded
from engine.networks import starting
from pages.parts import access, index, run_settings, wording
from pages.parts.steering import dialogs
from storage.index import queries
from storage.index.queries import RunRow
from storage.run import folder

CARD = "CARD.md"
MAKING = "Making the package. PyTorch's own code is called once, to see what a kernel has to stand in for"


@st.dialog("Package", width="large", icon=":material/package_2:", on_dismiss=dialogs.close)
def of_run(run: RunRow, candidate_id: str) -> None:
    """The package of one kernel. `run` is the recording where a replay is looked at."""
    kernel = queries.candidate(index.current(), run.run_id, candidate_id)
    dialogs.name_run(f"Kernel {kernel.number} of {run.title}" if kernel else run.title, run.run_id)
    _offer(lambda: supervisor.packaged_kernel(folder.find_run(run.run_id), candidate_id), run.task_name, run.run_id)


@st.dialog("Ship", width="large", icon=":material/package_2:", on_dismiss=dialogs.close)
def of_network(name: str) -> None:
    """The package of the kernels that were kept in a network."""
    st.markdown(f"**{wording.plain(name)}**")
    _offer(lambda: starting.packaged(name), name)


def _offer(make: Callable[[], Mapping[str, str]], name: str, run_id: str = "") -> None:
    """`run_id` of the one run whose kernel it is, if it is one."""
    with st.spinner(MAKING):
        made = dialogs.hold("package", lambda: _made(make))
    if isinstance(made, Exception):
        why = re.sub(r"^run \S+ cannot be packaged: ", "", str(made))  # which run it is stands above
        st.error(f"Not packaged: {wording.sentence(why)}", icon=":material/block:")
    else:
        with st.container(key="package_card"):
            st.markdown(as_shown(made.get(CARD, "")))
    with st.container(horizontal=True, horizontal_alignment="right", key="dialog_buttons"):
        if st.button("Close", key="package_no", on_click=dialogs.close):
            st.rerun()
        if isinstance(made, EvaluationModeNeeded) and run_id and access.may_steer():
            st.button(
                "New run in evaluation mode", icon=":material/add_circle:", type="primary", key="package_mended",
                on_click=dialogs.confirm, args=(None,),
                help="opens New run with the task, sizes, model, method and limits of this run",
            )  # fmt: skip
            if dialogs.take_confirmed():
                st.switch_page("new_run.py", query_params={"like": run_id, run_settings.EVALUATION_MODE: "1"})
        elif not isinstance(made, Exception):
            st.download_button(
                "Download", supervisor.archived(made, f"{name}-package"), file_name=f"{name}-package.zip",
                mime="application/zip", icon=":material/download:", key="download_package", on_click="ignore",
                type="primary",
            )  # fmt: skip


def as_shown(card: str) -> str:
    """A card in Streamlit's Markdown, below the dialog's own heading. What a person or a model wrote stands in it too:
    none of it loads a picture."""
    lowered = re.sub(r"^(#+ )", r"#\1", card, flags=re.MULTILINE)
    return lowered.replace("<br>", "; ").replace("![", r"!\[")


def _made(make: Callable[[], Mapping[str, str]]) -> Mapping[str, str] | Exception:
    """Its files, or why there are none."""
    try:
        return make()
    except (EngineError, ValueError, OSError) as error:  # networks that cannot be read are of ValueError
        return error
