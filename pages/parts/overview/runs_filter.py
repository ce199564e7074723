"""Which runs the overview shows, in which order: fields whose values stand in the address, so a view can be sent."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from storage.queries import Choices, RunFilter, RunSort
from storage.records import RunState

SORT_NAME = {
    RunSort.NEWEST: "newest first",
    RunSort.LAST_EVENT: "latest event first",
    RunSort.BEST: "fastest first",
    RunSort.COST: "most expensive first",
    RunSort.ERRORS: "most errors first",
    RunSort.TASK: "by task",
}
# Names of their own: other pages have fields called task and model, and an address holds only this page's.
FIND, STATE, TASK, MODEL, SORT, PAGE = "find", "state", "task_name", "model_name", "sort", "page"


def draw(choices: Choices) -> tuple[RunFilter, RunSort]:
    """The fields, and what they say now."""
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="runs_filter"):
        text = st.text_input(
            "Find", key=FIND, type="search", placeholder="task, model, device or ID", width=230, bind="query-params",
            on_change=first_page,
        )  # fmt: skip
        state = _choice("State", STATE, [str(one) for one in RunState], 165)
        task = _choice("Task", TASK, choices.tasks, 165)
        model = _choice("Model", MODEL, choices.models, 165)
        sort = st.selectbox(
            "Order", list(RunSort), format_func=SORT_NAME.__getitem__, key=SORT, width=165, bind="query-params",
            on_change=first_page,
        )  # fmt: skip
    return RunFilter(state, task, model, text or ""), RunSort(sort or RunSort.NEWEST)


def _choice(label: str, key: str, options: Sequence[str], width: int) -> str:
    """One of the options, or any. Trap: the address holds the name on screen, so it must not change with the data."""

    return str(
        st.selectbox(
            label, ["", *options], format_func=lambda one: one or "any", key=key, width=width, bind="query-params",
            on_change=first_page,
        ) or ""
    )  # fmt: skip


def first_page() -> None:
    """Another choice begins on its first page."""
    # Trap: a value taken away would come back from the address.
    st.session_state[PAGE] = 1


def clear() -> None:
    """Leave everything in."""
    first_page()
    for key in (FIND, STATE, TASK, MODEL):
        st.session_state[key] = ""


def nothing_fits(everything: int) -> None:
    """There are runs, but none of them was asked for."""
    with st.container(border=True, horizontal_alignment="center"):
        st.header(":material/filter_alt_off: No matching runs", text_alignment="center")
        sentence = (
            f"None of the {everything:,} runs matches all filters."
            if everything > 1
            else "The only run does not match."
        )
        st.markdown(sentence, text_alignment="center")
        st.button("Show all runs", icon=":material/filter_alt_off:", on_click=clear, key="clear_filter")
