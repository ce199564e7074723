"""What a person can do on a kernel's page: go on from the kernel, make it the base, edit it by hand; and the keys,
where numbers open tabs, j and k go to the next and previous kernel."""

from __future__ import annotations

import streamlit as st

from pages.parts import access, client, run_state
from pages.parts.steering import dialogs
from pages.parts.steering.dialogs import Dialog
from storage.queries import CandidateRow, RunRow
from storage.records import Verdict

KEYS_CAPTION = (
    "Keys: j and k for the next and previous kernel, 1 to {tabs} for the tabs, n and p for the next and previous hunk"
)

_PAGE = "candidate"  # of the address

_keys = st.components.v2.component("tilewright_keys", html="<span hidden></span>", js=client.read("kernel/keys.js"))


def draw(run: RunRow, candidate: CandidateRow) -> None:
    """A row of buttons; nothing on a read-only server, nor for a replay."""
    if run.replay_of or not access.may_steer():
        return
    state = run_state.of(run)
    with st.container(horizontal=True, key="kernel_actions"):
        _opens(Dialog.TRY_AGAIN, "Go back or fork from here", ":material/undo:", run, candidate)
        is_live = not state.is_over
        if is_live and candidate.verdict is Verdict.PASSED:
            _opens(Dialog.BASE, "Use as base kernel", ":material/keep:", run, candidate)
        if st.button("Edit by hand", icon=":material/edit:", key=f"kernel_edit:{run.run_id}"):
            target = {"run": run.run_id, "candidate": candidate.candidate_id}
            st.switch_page("edit.py", query_params=target)


def _opens(dialog: Dialog, label: str, icon: str, run: RunRow, candidate: CandidateRow) -> None:
    st.button(
        label, icon=icon, key=f"kernel_{dialog}:{run.run_id}:{candidate.candidate_id}", on_click=dialogs.ask,
        args=(dialog, run.run_id, candidate.candidate_id),
    )  # fmt: skip


def listen_to_keys(links: dict[str, str]) -> None:
    """Keep what is pressed until the page is drawn. Draw it first. Each key of `links` stands for the link of that
    name."""
    _keys(data={"links": links, "shown": "", "page": _PAGE}, key="keys_first")


def act_on_keys(links: dict[str, str], shown: str) -> None:
    """Act on what was pressed. `shown` changes with what the keys lead to. Draw it last: what it says is shown must be
    there by then."""
    _keys(data={"links": links, "shown": shown, "page": _PAGE}, key="keys")
