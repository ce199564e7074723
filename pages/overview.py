"""All runs, one row each, newest first."""

from __future__ import annotations

import streamlit as st

from engine import supervisor
from pages.parts import alert_list, index, now, pulse, runs_table, steering_access
from storage import folder, queries

PAGE_SIZE = 50


@st.fragment
def live() -> None:
    """The table; drawn again only when something in it has changed."""
    db = index.current()
    version = pulse.version([], is_overview=True)
    total = queries.count_runs(db)
    if not total:
        now.watch([], is_overview=True, version=version)
        nothing_yet()
        return
    number = page_number(total)
    shown = queries.overview(db, PAGE_SIZE, (number - 1) * PAGE_SIZE)
    states = {run.run_id: pulse.state_of(run) for run in shown}
    unfinished = [run.run_id for run in shown if not run.state.is_finished]
    now.watch(unfinished, is_overview=True, version=version + pulse.engines(unfinished))
    waiting = [name for name in queries.waiting_runs(db) if pulse.has_engine(name)]
    runs_table.headline(shown, states, total, len(waiting))
    opened = runs_table.draw(shown, states, alert_list.of_runs(states))
    if today := "; ".join(f"{used:g} of {allowed:g} {name}" for name, used, allowed in supervisor.spent_today()):
        st.caption(f":material/today: Spent today by all runs: {today}")
    first = (number - 1) * PAGE_SIZE + 1
    st.caption(f"showing {first:,}–{first + len(shown) - 1:,} of {total:,} {'run' if total == 1 else 'runs'}")
    if opened:
        st.switch_page("run.py", query_params={"run": opened})


def page_number(total: int) -> int:
    """The page asked for, if there is more than one."""
    pages = -(-total // PAGE_SIZE)
    return int(st.pagination(pages, key="overview_page")) if pages > 1 else 1


def nothing_yet() -> None:
    """Empty, said plainly, with both ways to begin."""
    with st.container(border=True, horizontal_alignment="center"):
        st.subheader(":material/monitoring: No runs yet", text_alignment="center")
        st.markdown(
            f"Nothing has been started under `{folder.home()}`. Start a run here, or from a terminal: "
            "`python -m engine run square_matmul`",
            text_alignment="center",
        )
        if steering_access.is_allowed():
            st.page_link("new_run.py", label="Start the first run", icon=":material/add_circle:", width="content")


st.title("Runs", anchor=False)
live()
