"""All runs, one row each: those that were asked for, in the order that was asked for."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from engine import supervisor
from pages.parts import change_token, index, run_state
from pages.parts.compare import compared_runs
from pages.parts.film import screen
from pages.parts.overview import example_runs, getting_started, label_dialogs, run_totals, runs_filter, runs_table
from pages.parts.status import alerts, damaged, now, welcome
from pages.parts.steering import open_dialog, steer
from storage.index import queries
from storage.index.queries import RunFilter, RunSort

PAGE_SIZE = 50


@st.fragment
def live() -> None:
    """The list; drawn again only when something in it has changed."""
    if welcome.is_first_visit() and screen.film():
        welcome.stay()
        st.switch_page("first.py")
    open_dialog.follow()
    title = st.container(horizontal=True, vertical_alignment="center", key="runs_head")
    title.title("Runs", anchor=False, width="content")
    runs_filter.take_asked()
    db = index.current()
    token = change_token.of([], is_overview=True)
    everything = queries.count_runs(db)
    with st.container():
        are_some_unreadable = damaged.unreadable()
    if not everything:
        with title:
            example_runs.draw_ways(has_film=screen.film() is not None)
        now.watch([], is_overview=True, token=token)
        if not are_some_unreadable:
            getting_started.draw()
        example_runs.draw()
        label_dialogs.draw_undo()
        label_dialogs.draw_trash()
        return
    lost = run_state.lost(queries.unfinished_runs(db))
    counts = queries.state_counts(db, lost)
    waiting = len([name for name in queries.waiting_runs(db) if name not in lost])
    with title:
        examples, replays = queries.count_examples(db), queries.count_replays(db)
        run_totals.headline(everything - examples - replays, counts, waiting, examples, replays)
    totals = st.container(key="run_totals")
    chosen, sort, by = runs_filter.draw(queries.choices(db))
    with title:
        example_runs.draw_ways(has_film=screen.film() is not None, are_shown=chosen.is_example)
    with st.container():
        label_dialogs.draw_undo()
    if by:
        now.watch([], is_overview=True, token=token)
        rows = queries.groups(db, by, chosen, lost)
        if rows:
            run_totals.draw_groups(by, rows)
        else:
            runs_filter.nothing_fits(everything)
    else:
        draw_list(chosen, sort, lost, everything, token)
    with totals:  # last: it tells the best of the rows, and must not be ahead of them
        run_totals.draw(counts, queries.run_totals(db, run_totals.midnight()))
    used_today()
    if not queries.count_own_runs(db) and not are_some_unreadable:
        getting_started.draw()
    example_runs.draw()
    label_dialogs.draw_trash()
    steer.give_word_back()


def draw_list(chosen: RunFilter, sort: RunSort, lost: Sequence[str], everything: int, token: str) -> None:
    """One line a run, page by page."""
    db = index.current()
    # Trap: a table that comes and goes among changing neighbours would be mounted anew; it has a place of its own.
    slot = st.container()
    lead = supervisor.SHOWN_FIRST
    number = page_number(queries.listing(db, chosen, sort, lost, PAGE_SIZE).total)  # mostly the page asked for
    listing = queries.listing(db, chosen, sort, lost, PAGE_SIZE, (number - 1) * PAGE_SIZE, lead)
    shown = queries.of_ids(db, listing.run_ids)
    states = {run.run_id: run_state.of(run) for run in shown}
    unfinished = [run.run_id for run in shown if not run.state.is_finished]
    now.watch(unfinished, is_overview=True, token=token + change_token.engines(unfinished))
    opened = None
    with slot:
        if shown:
            found = alerts.of_runs({run.run_id: states[run.run_id] for run in shown if not run.replay_of})
            opened = runs_table.draw(shown, states, found, sort, compared_runs.MOST)
        else:
            runs_filter.nothing_fits(everything)
    st.caption(showing((number - 1) * PAGE_SIZE + 1, len(shown), listing.total, everything))
    if opened and not runs_table.take_action(opened, shown):
        st.switch_page("run.py", query_params={"run": opened})


def used_today() -> None:
    """How much of the limits of a day is used, where there are any."""
    if today := "; ".join(
        f"{used:g} of {allowed:g} {name.removesuffix(' of a day')}" for name, used, allowed in supervisor.spent_today()
    ):
        st.caption(f":material/today: Used today by all runs: {today}")


def showing(first: int, count: int, total: int, everything: int) -> str:
    """Which part of what fits is on screen, so that nothing is left out in silence."""
    noun = "run" if total == 1 else "runs"
    part = f"Showing {first:,}–{first + count - 1:,} of {total:,} {noun}" if count else "Showing 0 runs"
    match = "matches" if total == 1 else "match"
    return part if total == everything else f"{part} that {match}, of {everything:,} in all"


def page_number(total: int) -> int:
    """The page asked for, if there is more than one."""
    pages = -(-total // PAGE_SIZE)
    return min(int(st.pagination(pages, key="page", bind="query-params")), pages) if pages > 1 else 1


live()
open_dialog.draw()
label_dialogs.draw()
