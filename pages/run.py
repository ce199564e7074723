"""One run as a cockpit: how it stands, what the engine does now, its curve, a kernel beside it, the controls."""

from __future__ import annotations

import streamlit as st

from pages.parts import change_token, index, run_state
from pages.parts.run import (
    activity,
    curve_chart,
    first_kernel,
    kernel_panel,
    kernels_table,
    key_figures,
    lineage_strip,
    result_panel,
    run_header,
    seek_bar,
    selection,
    spending,
    unusable_replies,
)
from pages.parts.status import address, now, pinned_snapshot, settings_list, tab_title, welcome
from pages.parts.steering import approval, command_list, open_dialog, reply_form, steer, steering_panel
from storage.index import queries
from storage.index.queries import RunRow
from storage.run.settings import RunState

run_id = st.query_params.get("run", "")


@st.fragment
def live() -> None:
    """The whole cockpit; drawn again only when something about this run has changed, or a person has done something."""
    open_dialog.follow()
    token = change_token.of([run_id], is_overview=False)
    run = queries.run(index.current(), run_id)
    if run is None:
        address.unknown_run(run_id, token)
        return
    tab_title.say_run(index.current(), run)
    if elsewhere := selection.take(run_id):
        open_tab(elsewhere)
    state = run_state.of(run)
    shown = pinned_run() or run
    with pinned_snapshot.view(run_id):
        draw_standing(shown)
    with st.container():  # always there: what comes and goes in it must not move the curve to another place
        reply_form.draw(run, state, activity.draw_new_in_prompt)
        approval.draw(run, state)
    chosen = selection.current()
    left, right = st.columns([1.3, 1] if chosen else [2.35, 1], gap="medium")
    with left, pinned_snapshot.view(run_id):
        draw_course(shown, token)
    with right, st.container(key="run_side"):
        draw_side(run, state, shown, chosen)
    steer.give_word_back()


def pinned_run() -> RunRow | None:
    """The run as it was when this page was frozen; None while the page is live."""
    pinned = pinned_snapshot.of(run_id)
    return queries.run(pinned.snapshot, run_id) if pinned else None


def draw_standing(run: RunRow) -> None:
    """Everything above the curve: what the run is, what needs a person, one line of figures."""
    state = pinned_snapshot.state_of(run)
    run_header.draw(run, state)
    key_figures.draw(run, state)


def draw_course(run: RunRow, token: str) -> None:
    """Where a replay stands, the curve, what the engine does now, the kernels the curve is made of, and what the model
    is told."""
    state = pinned_snapshot.state_of(run)
    rows = None
    with st.container():
        seek_bar.draw(run)
    with st.container(key="curve_place"):
        before, place = st.container(key="first_kernel_place"), st.container()
        if first_kernel.is_due(run):
            with before:
                first_kernel.draw(run)
                activity.draw_reply(run, state, queries.current_step(index.current(), run_id))  # all there is to see
                unusable_replies.draw(run, state)
        elif not run.attempts and queries.count_unusable_replies(index.current(), run_id):
            with place:
                unusable_replies.draw(run, state)
        elif not run.curve and not run.failed:
            waits = run_state.shown_state(run) is RunState.WAITING
            nothing = (
                "No kernel yet: the run waits for your reply." if waits else "The run ended before it had a kernel."
            )
            place.info(nothing, icon=":material/show_chart:")
        else:
            with place:
                rows = curve_chart.draw(run)
    draw_step(run, state, token)
    with st.container():
        if rows:
            curve_chart.draw_notes(rows)
        run_header.draw_notes(run, state)
    lineage_strip.draw(run)
    kernels_table.draw(run)
    kernels_table.draw_errors(run)
    if run.attempts and not first_kernel.is_due(run):
        unusable_replies.draw(run, state)
    activity.draw_prompt(run, state)


def draw_step(run: RunRow, state: RunState, token: str) -> None:
    """Right under the curve: the step in progress, the reply as it comes in."""
    pinned = pinned_snapshot.of(run_id)
    step = queries.current_step(index.current(), run_id)
    usual_s = queries.typical_seconds(index.current(), run_id, step.kind) if step else None
    now.draw(run, state, step, token, usual_s, pinned, lambda: pinned_snapshot.switch(run_id),
             steer.pending(run_id) if not pinned else None)  # fmt: skip
    with st.container():  # a run that ends would else be drawn with two curves and two panels for a moment
        if not first_kernel.is_due(run):
            activity.draw_reply(run, state, step)


def draw_side(run: RunRow, state: RunState, shown: RunRow, chosen: str) -> None:
    """The open kernel, if any, the result, and the controls; those are never frozen."""
    with st.container(), pinned_snapshot.view(run_id):
        if chosen:
            st.session_state[f"looked_at:{run_id}"] = chosen
            kernel_panel.draw(shown, chosen)
    with st.container(), pinned_snapshot.view(run_id):
        welcome.draw(shown, pinned_snapshot.state_of(shown))
        if result_panel.is_due(shown, pinned_snapshot.state_of(shown)):
            result_panel.draw(shown, pinned_snapshot.state_of(shown))
    steering_panel.draw(run, state)
    spending.draw(run, state, shown)
    with pinned_snapshot.view(run_id):
        spending.draw_time(shown, pinned_snapshot.state_of(shown))
    settings_list.draw(run)
    command_list.draw(run)
    with pinned_snapshot.view(run_id):
        activity.draw_feed(shown)


def open_tab(address: str) -> None:
    """Leave for a tab of a kernel's own page."""
    chosen, _, tab = address.partition("#")
    st.session_state[f"looked_at:{run_id}"] = chosen
    st.switch_page("candidate.py", query_params={"run": run_id, "candidate": chosen, "tab": tab})


address.confirm("run", run_id)
with address.place("run", run_id):
    live()
open_dialog.draw()
