"""Everything that people asked of a run: who, when, how far it came, from which step it holds and what it led to."""

from __future__ import annotations

import streamlit as st

from pages.parts import command_list, index, missing, now, pulse, steering_filter, table
from storage import queries

run_id = st.query_params.get("run", "")
PAGE = 100
COLUMNS = [
    table.Column("what", "Command"),
    table.Column("who", "Asked by"),
    table.Column("read", "Acknowledged", help="when the engine had read it, and how long after the asking"),
    table.Column("holds", "In effect", help="from which step it holds, and how long after the asking"),
    table.Column("state", "State"),
    table.Column("effect", "What it led to", "wide"),
]


@st.fragment
def live() -> None:
    """The page; drawn again when something about the run has changed."""
    db = index.current()
    version = pulse.version([run_id], is_overview=False)
    run = queries.run(db, run_id)
    if run is None:
        missing.run(run_id, version)
        return
    now.watch([run_id], is_overview=False, version=version)
    st.page_link(
        "run.py", label=run.title.capitalize(), icon=":material/arrow_back:", query_params={"run": run_id},
        width="content",
    )  # fmt: skip
    st.title("Steering", anchor=False)
    asked = queries.commands(db, run_id)[::-1]
    if not asked:
        st.caption("Nobody has steered this run yet. What people ask of it is listed here, with what became of it.")
        return
    has_engine = pulse.has_engine(run_id)
    effects = queries.effects(db, run_id)
    found = steering_filter.draw(asked, has_engine, effects)
    is_all = len(found) > PAGE and st.session_state.get("all_commands", False)
    shown = found if is_all else found[:PAGE]
    st.caption(f"showing {len(shown):,} of {len(asked):,}, newest first")
    rows = [table.Row(c.command_id, command_list.wide(run, c, has_engine, effects)) for c in shown]
    table.draw("What people asked of this run, newest first", COLUMNS, rows, key="all_steering", is_folding=True)
    if len(found) > PAGE:
        st.toggle(f"show all {len(found):,}", key="all_commands")


live()
