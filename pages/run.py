"""One run: its curve, what the engine does this second, and the controls that steer it."""

from __future__ import annotations

import streamlit as st

from pages.parts import (
    answer_desk,
    command_list,
    curve_chart,
    index,
    kernels_table,
    key_figures,
    leave_desk,
    missing,
    now,
    pulse,
    run_header,
    spending,
    steering_panel,
    step_feed,
    stream,
)
from storage import queries

run_id = st.query_params.get("run", "")


@st.fragment
def live() -> None:
    """The whole cockpit; drawn again only when something about this run has changed."""
    db = index.current()
    version = pulse.version([run_id], is_overview=False)
    run = queries.run(db, run_id)
    if run is None:
        missing.run(run_id, version)
        return
    state = pulse.state_of(run)
    step = queries.current_step(db, run_id)
    run_header.draw(run, state)
    now.draw(run, state, step, version)
    with st.container():  # always there: what comes and goes in it must not move the curve to another place
        answer_desk.draw(run, state)
        leave_desk.draw(run, state)
    left, right = st.columns([2.35, 1], gap="medium")
    with left:
        clicked = curve_chart.draw(run)
        stream.draw(run, state, step)
        opened = kernels_table.draw(run)
    with right:
        key_figures.draw(run, state)
        steering_panel.draw(run, state)
        spending.draw(run, state)
        command_list.draw(run)
        step_feed.draw(run)
    chosen, _, tab = (clicked or opened or "").partition("#")
    if chosen:
        st.session_state[f"looked_at:{run_id}"] = chosen
        target = {"run": run_id, "candidate": chosen} | ({"tab": tab} if tab else {})
        st.switch_page("candidate.py", query_params=target)


live()
