"""How much a person takes part: answering calls instead of the model, approving steps before they begin."""

from __future__ import annotations

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import dialogs, leave_desk, steer, wording
from storage import folder
from storage.attendance import MANUAL, Ask, AskFirst, Fallback
from storage.queries import RunRow
from storage.records import CommandKind

ASK_NAME = {Ask.OFF: "no", Ask.CALLS: "calls to the model", Ask.ALL: "every step"}


def draw(run: RunRow) -> None:
    """The controls, folded away: most runs need neither."""
    if run.model != MANUAL:
        st.button(
            "Answer the next call myself", icon=":material/edit_note:", key="take_over", width="stretch",
            help="the prompt waits here for your reply instead of going to the model",
            on_click=steer.send, args=(run.run_id, CommandKind.TAKE_OVER, "next"),
        )  # fmt: skip
    with st.expander("Approve steps before they begin", icon=":material/front_hand:"):
        if in_force := leave_desk.rule_now(run.run_id):
            st.caption(f"in force: {in_force}")
        with st.form("ask_first_form", border=False):
            rule_form("steer")
            st.form_submit_button("Set", on_click=_send, args=(run.run_id,))


def rule_form(name: str) -> AskFirst:
    """The fields of a rule; `name` keeps the keys of two such forms apart."""
    which = (
        st.selectbox("Wait for a yes before", list(Ask), format_func=ASK_NAME.__getitem__, key=f"ask:{name}") or Ask.OFF
    )
    left, right = st.columns(2)
    fallback = left.selectbox("Silence means", list(Fallback)[::-1], key=f"silence:{name}", help="never: it waits on")
    after = right.number_input("after seconds", 1, 100_000, 60, key=f"after:{name}")
    return AskFirst(which, fallback, float(after))


def _send(run_id: str) -> None:
    state = st.session_state
    rule = AskFirst(state["ask:steer"], state["silence:steer"], float(state["after:steer"]))
    steer.send(run_id, CommandKind.ASK_FIRST, str(rule))


@st.dialog("Save this run as a recording", icon=":material/save:", on_dismiss=dialogs.close)
def save_recording(run: RunRow) -> None:
    """A download of the replies, which replay without a key."""
    try:
        text = supervisor.recording_of(folder.find_run(run.run_id))
    except (EngineError, FileNotFoundError) as error:
        st.info(wording.plain(str(error)), icon=":material/info:")
        return
    st.markdown(
        f"{text.count(chr(10)) - 1:,} replies of this run. Replayed, they need no key; kernels are built and judged "
        "anew. Keys and addresses are left out."
    )
    name = f"{run.task_name}.jsonl"
    st.code(f"python -m engine run {run.task_name} --recording {name}", language="bash")
    st.download_button(
        "Download", text, file_name=name, mime="application/jsonl", icon=":material/download:", on_click="ignore",
        key="download_recording",
    )  # fmt: skip
