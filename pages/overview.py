"""All runs, one row each: those that were asked for, in the order that was asked for."""

from __future__ import annotations

import streamlit as st

from engine import supervisor
from pages.parts import access, change_token, index, run_state
from pages.parts.overview import runs_table
from pages.parts.status import alerts, damaged, now
from pages.parts.steering import open_dialog, steer
from storage import folder, queries

PAGE_SIZE = 50


@st.fragment
def live() -> None:
    """The table; drawn again only when something in it has changed."""
    open_dialog.follow()
    db = index.current()
    token = change_token.of([], is_overview=True)
    everything = queries.count_runs(db)
    with st.container():
        are_some_unreadable = damaged.unreadable()
    if not everything:
        now.watch([], is_overview=True, token=token)
        if not are_some_unreadable:
            nothing_yet()
        return
    lost = run_state.lost(queries.unfinished_runs(db))
    counts = queries.state_counts(db, lost)
    runs_table.headline(everything, counts, len([name for name in queries.waiting_runs(db) if name not in lost]))
    chosen, sort = runs_table.draw_filter(queries.choices(db))
    # Trap: a table that comes and goes among changing neighbours would be mounted anew; it has a place of its own.
    place = st.container()
    number = page_number(queries.listing(db, chosen, sort, lost, 1).total)
    found = queries.listing(db, chosen, sort, lost, PAGE_SIZE, (number - 1) * PAGE_SIZE)
    shown = queries.of_ids(db, found.run_ids)
    states = {run.run_id: run_state.of(run) for run in shown}
    unfinished = [run.run_id for run in shown if not run.state.is_finished]
    now.watch(unfinished, is_overview=True, token=token + change_token.engines(unfinished))
    opened = None
    with place:
        if shown:
            opened = runs_table.draw(shown, states, alerts.of_runs(states))
        else:
            runs_table.nothing_fits(everything)
    first = (number - 1) * PAGE_SIZE + 1
    st.caption(showing(first, len(shown), found.total, everything))
    if today := "; ".join(
        f"{used:g} of {allowed:g} {name.removesuffix(' of a day')}" for name, used, allowed in supervisor.spent_today()
    ):
        st.caption(f":material/today: Used today by all runs: {today}")
    if opened and not runs_table.take_action(opened, shown):
        st.switch_page("run.py", query_params={"run": opened})
    steer.give_word_back()


def showing(first: int, count: int, total: int, everything: int) -> str:
    """Which part of what fits is on screen, so that nothing is left out in silence."""
    noun = "run" if total == 1 else "runs"
    part = f"showing {first:,}–{first + count - 1:,} of {total:,} {noun}" if count else "showing 0 runs"
    return part if total == everything else f"{part} that match, of {everything:,} in all"


def page_number(total: int) -> int:
    """The page asked for, if there is more than one."""
    pages = -(-total // PAGE_SIZE)
    return min(int(st.pagination(pages, key="page", bind="query-params")), pages) if pages > 1 else 1


def nothing_yet() -> None:
    """Empty, said plainly, with both ways to begin."""
    with st.container(border=True, horizontal_alignment="center"):
        st.header(":material/monitoring: No runs yet", text_alignment="center")
        st.markdown(
            f"No runs in `{folder.home()}`. Start one here, or from a terminal: `python -m engine run square_matmul`",
            text_alignment="center",
        )
        if access.may_steer():
            st.page_link("new_run.py", label="Start the first run", icon=":material/add_circle:", width="content")


st.title("Runs", anchor=False)
live()
open_dialog.draw()
