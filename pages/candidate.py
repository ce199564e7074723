"""One kernel: what changed, whether it is right, how fast it is, what the model was told and said."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages.parts import change_token, index
from pages.parts.kernel import (
    diff_tab,
    errors_tab,
    kernel_header,
    mark,
    profile_tab,
    prompts_tab,
    repair_tab,
    same_kernel,
    trust_tab,
    workloads_table,
)
from pages.parts.status import address, damaged, now, tab_title
from pages.parts.steering import open_dialog, steer
from storage.index import queries
from storage.index.queries import CandidateRow
from storage.results.vocabulary import Verdict

run_id = st.query_params.get("run", "")
candidate_id = st.query_params.get("candidate", "")
address.confirm("kernel", f"{run_id}/{candidate_id}")

TABS: dict[str, Callable[[str, CandidateRow], None]] = {
    "Diff": diff_tab.draw,
    "Source": diff_tab.draw_source,
    "Diagnosis and patch": repair_tab.draw,
    "Errors": errors_tab.draw,
    "Profile": profile_tab.draw,
    "Prompts and replies": prompts_tab.draw,
    "Trust": trust_tab.draw,
}


LINKS = {"j": "Next", "k": "Previous"}


def _address_tab() -> None:
    """The open tab stands in the address, so that a link leads back to it."""
    st.query_params["tab"] = str(st.session_state["tab"])


def _first_tab(candidate: CandidateRow) -> str:
    """What opens where the address names no tab: why a kernel failed, or what it changes; later whatever was chosen."""
    if st.session_state.get("opened_kernel") == (candidate.run_id, candidate.candidate_id):
        return ""
    st.session_state["opened_kernel"] = candidate.run_id, candidate.candidate_id
    return "Errors" if candidate.verdict not in (None, Verdict.PASSED) else "Diff"


@st.fragment
def live() -> None:
    """The page; drawn again when something about the run has changed. Only the open tab is filled."""
    open_dialog.follow()
    kernel_header.listen_to_keys(LINKS)
    db = index.current()
    token = change_token.of([run_id], is_overview=False)
    run = queries.run(db, run_id)
    if run is None:
        address.unknown_run(run_id, token)
        return
    now.watch([run_id], is_overview=False, token=token)
    candidate = queries.candidate(db, run_id, candidate_id)
    if candidate is None:
        address.unknown_kernel(run_id, candidate_id)
        return
    tab_title.say(f"Kernel {candidate.number}", run.title)
    st.session_state[f"looked_at:{run_id}"] = candidate_id
    with st.container():
        damaged.banner(run_id)
    kernel_header.draw(run, candidate)
    workloads_table.draw(run_id, candidate_id)
    same_kernel.draw(run_id, candidate_id)
    asked_tab = st.query_params.get("tab", "") or _first_tab(candidate)
    # Trap: writing a widget's value overrules a click that is on its way, so never write what it shows already.
    if asked_tab in TABS and st.session_state.get("tab") != asked_tab:
        st.session_state["tab"] = asked_tab
    kernel_header.draw_actions(run, candidate)
    with st.container(key="kernel_tabs"):
        tabs = st.tabs(list(TABS), key="tab", on_change=_address_tab)
    shown = candidate_id
    for tab, (name, fill) in zip(tabs, TABS.items(), strict=True):
        if tab.open:
            with tab:
                fill(run_id, candidate)
                shown = f"{candidate_id}/{name}"
    st.caption(kernel_header.KEYS_CAPTION.format(tabs=len(TABS)))
    kernel_header.act_on_keys(LINKS, shown)
    steer.give_word_back()


live()
open_dialog.draw()
mark.draw_if_open()
