"""How much a person takes part: answering calls instead of the model, approving steps before they begin."""

from __future__ import annotations

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import wording
from pages.parts.steering import dialogs, leave_desk, steer
from storage import folder
from storage.attendance import MANUAL, Ask, AskFirst, Fallback
from storage.queries import RunRow
from storage.records import CommandKind

ASK_NAME = {Ask.OFF: "no step", Ask.CALLS: "steps that call the model", Ask.ALL: "every step"}
SILENCE_NAME = {Fallback.NEVER: "wait", Fallback.YES: "approve", Fallback.NO: "reject"}


def draw(run: RunRow) -> None:
    """The controls, folded away: most runs need neither."""
    if run.model != MANUAL:
        steer.button(
            "Write the next reply yourself",
            run.run_id,
            CommandKind.TAKE_OVER,
            "next",
            icon=":material/edit_note:",
            width="stretch",
            help="the next prompt is shown here and waits for your reply instead of going to the model",
        )
    with st.expander("Approve steps before they start", icon=":material/front_hand:"):
        if in_force := leave_desk.rule_now(run.run_id):
            st.caption(f"Now: {rule_words(in_force)}")
        with st.form(f"ask_first_form:{run.run_id}", border=False):
            rule_form("steer")
            st.form_submit_button("Apply", on_click=_send, args=(run.run_id,))


def rule_form(name: str) -> AskFirst:
    """The fields of a rule; `name` keeps the keys of two such forms apart."""
    which = (
        st.selectbox("Ask for approval before", list(Ask), format_func=ASK_NAME.__getitem__, key=f"ask:{name}")
        or Ask.OFF
    )
    left, right = st.columns(2)
    fallback = left.selectbox(
        "If nobody responds", list(Fallback)[::-1], format_func=SILENCE_NAME.__getitem__, key=f"silence:{name}"
    )
    after = right.number_input("after (seconds)", 1, 100_000, 60, key=f"after:{name}", help="not used with “wait”")
    return AskFirst(which, fallback, float(after))


def rule_words(rule: AskFirst) -> str:
    """The rule in force, as its form says it."""
    after = "" if rule.fallback is Fallback.NEVER else f" after {rule.after_s:g} s"
    silence = "" if rule.which is Ask.OFF else f"; if nobody responds: {SILENCE_NAME[rule.fallback]}{after}"
    return f"approval before {ASK_NAME[rule.which]}{silence}"


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
        f"{text.count(chr(10)) - 1:,} model replies of this run. A run from this file needs no API key; its kernels "
        "are built, checked and timed again. Keys and endpoint addresses are not included."
    )
    name = f"{run.task_name}.jsonl"
    st.code(f"python -m engine run {run.task_name} --recording {name}", language="bash")
    st.download_button(
        "Download", text, file_name=name, mime="application/jsonl", icon=":material/download:", on_click="ignore",
        key="download_recording",
    )  # fmt: skip
