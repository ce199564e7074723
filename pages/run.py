"""One run as a cockpit: how it stands, what the engine does now, its curve, a kernel beside it, the controls."""

from __future__ import annotations

import streamlit as st

from pages.parts import (
    answer_desk,
    command_list,
    curve_chart,
    error_groups,
    freeze,
    index,
    kernel_panel,
    kernels_table,
    key_figures,
    leave_desk,
    lineage_strip,
    missing,
    now,
    pulse,
    run_header,
    selection,
    spending,
    steering_panel,
    step_feed,
    stream,
)
from storage import queries
from storage.queries import RunRow
from storage.records import RunState

run_id = st.query_params.get("run", "")


@st.fragment
def live() -> None:
    """The whole cockpit; drawn again only when something about this run has changed, or a person has done something."""
    version = pulse.version([run_id], is_overview=False)
    run = queries.run(index.current(), run_id)
    if run is None:
        missing.run(run_id, version)
        return
    if elsewhere := selection.take(run_id):
        open_tab(elsewhere)
    state = pulse.state_of(run)
    with freeze.view(run_id):
        draw_standing(version)
    with st.container():  # always there: what comes and goes in it must not move the curve to another place
        answer_desk.draw(run, state)
        leave_desk.draw(run, state)
    chosen = selection.current()
    left, right = st.columns([1.3, 1] if chosen else [2.35, 1], gap="medium")
    with left, freeze.view(run_id):
        draw_course()
    with right:
        draw_side(run, state, chosen)


def held_run() -> tuple[RunRow, RunState]:
    """The run as this page shows it: as it is, or as it was when the page was frozen."""
    run = queries.run(index.current(), run_id)
    assert run is not None  # what is in the index now was in it when the page was frozen
    return run, pulse.state_of(run)


def draw_standing(version: str) -> None:
    """Everything above the curve."""
    run, state = held_run()
    held = freeze.held(run_id)
    step = queries.current_step(index.current(), run_id)
    usual_s = queries.typical_seconds(index.current(), run_id, step.kind) if step else None
    run_header.draw(run, state)
    key_figures.draw(run, state)
    now.draw(run, state, step, version, usual_s, held.last_seq if held else None, lambda: freeze.switch(run_id))
    stream.draw(run, state, step)


def draw_course() -> None:
    """The curve, and the kernels it is made of."""
    run, _ = held_run()
    curve_chart.draw(run)
    lineage_strip.draw(run)
    kernels_table.draw(run)
    error_groups.draw(run)


def draw_side(run: RunRow, state: RunState, chosen: str) -> None:
    """The open kernel, if any, and the controls; those are never frozen."""
    with st.container(), freeze.view(run_id):
        if chosen:
            st.session_state[f"looked_at:{run_id}"] = chosen
            kernel_panel.draw(run, chosen)
    steering_panel.draw(run, state)
    spending.draw(run, state)
    command_list.draw(run)
    with freeze.view(run_id):
        step_feed.draw(held_run()[0])


def open_tab(address: str) -> None:
    """Leave for a tab of a kernel's own page."""
    chosen, _, tab = address.partition("#")
    st.session_state[f"looked_at:{run_id}"] = chosen
    st.switch_page("candidate.py", query_params={"run": run_id, "candidate": chosen, "tab": tab})


live()
