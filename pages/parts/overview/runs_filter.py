"""Which runs are shown, in which order or groups: fields whose values stand in the address, so a view can be sent, kept
as a bookmark, and found again on the way back from a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from pages.parts import wording
from storage.index.queries import Archive, Choices, GroupBy, RunFilter, RunSort
from storage.run.settings import RunState

SORT_NAME = {
    RunSort.NEWEST: "own runs first",
    RunSort.OLDEST: "first started first",
    RunSort.LAST_EVENT: "latest event first",
    RunSort.QUIET: "longest quiet first",
    RunSort.BEST: "fastest first",
    RunSort.SLOWEST: "smallest gain first",
    RunSort.COST: "most expensive first",
    RunSort.CHEAPEST: "cheapest first",
    RunSort.ERRORS: "most errors first",
    RunSort.CORRECT: "fewest errors first",
    RunSort.TASK: "by name",
    RunSort.TASK_BACKWARDS: "by name, backwards",
    RunSort.STATE: "by state",
    RunSort.MODEL: "by model",
    RunSort.DEPTH: "most steps first",
}
ORDER_HELP = (
    "Own runs first, the newest on top, then examples. Of those a few to begin with stand first; then come the ones "
    "that finished with a profile and a kernel faster than the best alternative, then the others. Most errors first: "
    "by the share of a run's kernels that were wrong."
)
ARCHIVED, EXAMPLES = "archived", "examples"  # stand among the states
GROUP_NAME: dict[str, str] = {"": "no groups"} | {str(by): f"by {by}" for by in GroupBy}
# Names of their own: other pages have fields called task and model, and an address holds only this page's.
FIND, STATE, TASK, MODEL, STRATEGY, TAG = "find", "state", "task_name", "model_name", "strategy_name", "tag"
SORT, PAGE, GROUP = "sort", "page", "groups"
NAMES = {str(state): name for state, name in wording.STATE_NAME.items()}
_ASKED = "asked_fields"
OF_GROUP = {GroupBy.TASK: TASK, GroupBy.MODEL: MODEL, GroupBy.STRATEGY: STRATEGY, GroupBy.TAG: TAG}


def draw(choices: Choices) -> tuple[RunFilter, RunSort, GroupBy | None]:
    """The fields, and what they say now."""
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="runs_filter"):
        text = st.text_input(
            "Find", key=FIND, type="search", placeholder="name, tag, note, ID", width=180,
            bind="query-params", on_change=first_page,
        )  # fmt: skip
        state = _choice("State", STATE, [*map(str, RunState), ARCHIVED, EXAMPLES], 105)
        task = _choice("Task", TASK, choices.tasks, 125)
        model = _choice("Model", MODEL, choices.models, 125)
        strategy = _choice("Strategy", STRATEGY, choices.strategies, 112)
        tag = _choice("Tag", TAG, choices.tags, 100)
        by = st.selectbox(
            "Group", list(GROUP_NAME), format_func=GROUP_NAME.__getitem__, key=GROUP, width=118, bind="query-params",
            on_change=first_page,
        )  # fmt: skip
        sort = st.selectbox(
            "Order", list(RunSort), format_func=SORT_NAME.__getitem__, key=SORT, width=142, bind="query-params",
            on_change=first_page, help=ORDER_HELP,
        )  # fmt: skip
    archive = Archive.ARCHIVED if state == ARCHIVED else Archive.ACTIVE
    standing = "" if state in (ARCHIVED, EXAMPLES) else state
    chosen = RunFilter(standing, task, model, text or "", strategy, tag, archive, state == EXAMPLES)
    return chosen, RunSort(sort or RunSort.NEWEST), GroupBy(by) if by else None


def _choice(label: str, key: str, options: Sequence[str], width: int) -> str:
    """One of the options, or any. Trap: the address holds the name on screen, so it must not change with the data."""
    return str(
        st.selectbox(
            label, ["", *options], format_func=lambda option: NAMES.get(option, option) or "any", key=key, width=width,
            bind="query-params", on_change=first_page,
        ) or ""
    )  # fmt: skip


def first_page() -> None:
    """Another choice begins on its first page."""
    # Trap: a value taken away would come back from the address.
    st.session_state[PAGE] = 1


def clear() -> None:
    """Forget every filter, so that all runs are listed."""
    first_page()
    for key in (FIND, STATE, TASK, MODEL, STRATEGY, TAG):
        st.session_state[key] = ""


def ask(fields: Mapping[str, object]) -> None:
    """Have these fields say something else. Once drawn they cannot be set, so the part of the page is drawn again."""
    st.session_state[_ASKED] = {PAGE: 1, **fields}
    st.rerun(scope="fragment")


def take_asked() -> None:
    """Set what was asked for; before the fields are drawn."""
    for name, value in st.session_state.pop(_ASKED, {}).items():
        st.session_state[name] = value


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
