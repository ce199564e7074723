"""Replies that were to bring a kernel and brought none: what was asked, what came, and what can be done about it."""

from __future__ import annotations

import streamlit as st

from pages.parts import access, index, run_settings, wording
from pages.parts.kernel import prompts_tab
from pages.parts.status import no_kernel
from storage.index import queries
from storage.index.queries import RunRow
from storage.run.settings import RunState

SHOWN = 12


def draw(run: RunRow, state: RunState) -> None:
    """Each such reply with its prompt, folded; of a run without any kernel the last one is open, and another model is
    the next thing to try. Nothing where there are none."""
    count = queries.count_unusable_replies(index.current(), run.run_id)
    if not count:
        return
    calls = queries.unusable_replies(index.current(), run.run_id, SHOWN)
    st.markdown(f"## Replies without a usable kernel :gray[{count:,}]")
    if not run.attempts and state.is_over and access.may_steer() and not run.is_example:
        with st.container(horizontal=True, gap="small", key="after_no_kernel"):
            st.page_link(
                "new_run.py", label="Try another model", icon=":material/smart_toy:", width="content",
                query_params={"like": run.replay_of or run.run_id, run_settings.OTHER_MODEL: "1"},
            )  # fmt: skip
            st.page_link("models.py", label="Test this model", icon=":material/power:", width="content")
    for number, call in enumerate(calls, count - len(calls) + 1):
        said = wording.cut(no_kernel.reply(run, call), no_kernel.QUOTED)
        title = wording.plain(f"{number}. {call.role.capitalize()}: “{said}”")
        is_open = not run.attempts and call is calls[-1]
        fold = st.expander(title, expanded=is_open, key=f"unusable:{call.seq}", on_change="rerun")
        if fold.open:
            with fold:
                prompts_tab.details(run.run_id, call, [])
    if count > len(calls):
        st.caption(f"The newest {len(calls)} of {count:,} are shown.")
