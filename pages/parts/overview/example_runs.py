"""The runs that come with Tilewright: one click puts them beside a person's own, another takes them away. And the ways
from the head of the list to what it can have below a hundred rows."""

from __future__ import annotations

import functools
from collections.abc import Collection

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import access, index, wording
from pages.parts.overview import runs_filter
from pages.parts.steering import steer
from storage.index import queries

ABOUT = (
    "runs with every prompt, kernel, profile and check; most were stopped as soon as they had a good kernel. Read, "
    "compare, replay and fork them; none needs a GPU, and none counts in the totals."
)


@functools.cache
def shipped() -> tuple[frozenset[str], str]:
    """The ids of the shipped examples, and why they cannot be read; both empty where none is shipped."""
    try:
        return frozenset(example.run_id for example in supervisor.shipped_examples()), ""
    except EngineError as error:
        return frozenset(), str(error)


def draw_ways(*, has_film: bool, are_shown: bool = False) -> None:
    """Beside the title: a run told as a film, the examples alone unless they `are_shown` so, a run of one's own."""
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center", key="ways"):
        if has_film:
            st.page_link("first.py", label="Watch a run in 40 seconds", icon=":material/movie:", width="content")
        if queries.count_examples(index.current()):
            st.button(
                "Show all runs" if are_shown else "Show only examples", type="tertiary", key="only_examples",
                icon=":material/filter_alt_off:" if are_shown else ":material/filter_alt:",
                on_click=runs_filter.clear if are_shown else _show,
            )  # fmt: skip
        if access.may_steer():
            st.page_link("new_run.py", label="Begin a run of your own", icon=":material/add_circle:", width="content")


def draw() -> None:
    """One line: to open them, to remove them. Nothing where none is shipped."""
    examples, failure = shipped()
    opened = queries.count_examples(index.current())
    if failure:
        st.warning(wording.sentence(failure), icon=":material/error:")
    if not examples and not opened:
        return
    missing = examples - queries.titles(index.current(), examples).keys()
    with st.container(border=True, key="example_runs"):
        st.markdown(f":material/school: **Examples from an H200 and an H100**: {ABOUT}")
        with st.container(horizontal=True, vertical_alignment="center"):
            if missing and access.may_steer():
                label = f"Open examples from an H200 and an H100 ({len(missing)})"
                st.button(label, icon=":material/folder_open:", key="open_examples", on_click=_open, args=(missing,))
            if opened and access.may_steer():
                st.button(
                    "Remove examples", icon=":material/delete:", key="remove_examples", on_click=_remove,
                    help="They can be opened again at any time.",
                )  # fmt: skip


def _open(missing: Collection[str]) -> None:
    """Open the examples that are not here yet."""
    try:
        runs = supervisor.open_examples(sorted(missing))
    except (EngineError, OSError) as error:
        steer.say(str(error), is_error=True)
        return
    index.ingest().look_at(run.run_id for run in runs)
    steer.say(f"Opened {wording.counted(len(runs), 'example')}; they stand in the list, marked as examples.")


def _show() -> None:
    runs_filter.clear()
    st.session_state[runs_filter.STATE] = runs_filter.EXAMPLES


def _remove() -> None:
    try:
        gone, refused = supervisor.remove_examples()
    except EngineError as error:
        steer.say(str(error), is_error=True)
        return
    index.ingest().look_at(gone)
    stay = f" {len(refused)} stay: {'; '.join(refused)}" if refused else ""
    steer.say(f"Removed {wording.counted(len(gone), 'example')}.{stay}", is_error=bool(refused))
