"""What a run has spent of its limits, by limit and by role, and the way to go on with more."""

from __future__ import annotations

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import access, index, wording
from pages.parts.run import day_limits, limits_form
from pages.parts.status import damaged
from pages.parts.steering import steer
from storage import folder, queries
from storage.queries import AllowanceRow, RunRow, SpendingRow
from storage.records import CommandKind, RunState

WARNING_SHARE = 0.8


def draw(run: RunRow, state: RunState) -> None:
    """Bars for the limits that are set, the calls of each role on demand, and other limits."""
    allowed = queries.allowance(index.current(), run.run_id)
    if allowed is None:
        return
    rows = queries.spending(index.current(), run.run_id)
    with st.container(border=True, key="spending"):
        st.markdown("## Spending")
        for text, share in bars(run, allowed):
            st.progress(min(share, 1.0), text=text)
            if share >= WARNING_SHARE:
                left = "Limit reached" if share >= 1 else "More than 80 % used"
                st.caption(f":orange[:material/warning: {left}]")
        if not rows:
            st.caption("No model calls yet.")
        elif st.toggle("Calls by role", key="spending_by_role"):
            for row in rows:
                st.caption(line(row))
        _unknown(rows)
        if run.replay_of:
            st.caption("A replay costs nothing; these are the costs of the original run.")
        elif access.may_steer():
            _other_limits(run, state, allowed)
            day_limits.draw()


def bars(run: RunRow, allowed: AllowanceRow) -> list[tuple[str, float]]:
    """(words, share used) of every limit that is set."""
    found = []
    if allowed.max_model_calls is not None:
        text = f"Calls: {wording.count(run.model_calls)} of {wording.count(allowed.max_model_calls)}"
        found.append((text, run.model_calls / allowed.max_model_calls))
    if allowed.max_tokens is not None:
        text = f"Tokens: {wording.tokens(run.tokens)} of {wording.tokens(allowed.max_tokens)}"
        found.append((text, run.tokens / allowed.max_tokens))
    if allowed.max_cost_usd is not None:
        text = f"Cost: {wording.cost(run.cost_usd)} of {wording.cost(allowed.max_cost_usd)}".replace("$", "\\$")
        found.append((text, (run.cost_usd or 0.0) / allowed.max_cost_usd))
    if allowed.max_wall_s is not None:
        text = f"Engine time: {wording.seconds(allowed.spent_s)} of {wording.seconds(allowed.max_wall_s)}"
        found.append((text, allowed.spent_s / allowed.max_wall_s))
    return found


def line(row: SpendingRow) -> str:
    """The calls of one role in one line."""
    read = f"{wording.tokens(row.input_tokens)} tokens in ({wording.tokens(row.cached_tokens)} from cache)"
    written = f"{wording.tokens(row.output_tokens)} out ({wording.tokens(row.reasoning_tokens)} reasoning)"
    calls = wording.counted(row.calls, "call")
    guessed = f" · {wording.count(row.estimated)} estimated" if row.estimated else ""
    cost = wording.plain(wording.cost(row.cost_usd))
    return f"**{wording.plain(row.role)}** · {cost} · {calls} · {read}, {written}{guessed} · {wording.plain(row.model)}"


def _unknown(rows: list[SpendingRow]) -> None:
    unpriced = sorted({row.model for row in rows if row.cost_usd is None})
    uncounted = sum(row.uncounted for row in rows)
    if unpriced:
        names = ", ".join(map(wording.plain, unpriced))
        st.caption(f"Cost of {names} unknown: add the price to prices.toml in {folder.home()}.")
    if uncounted:
        st.caption(f"No token count from the endpoint for {wording.counted(uncounted, 'call')}.")


def _other_limits(run: RunRow, state: RunState, allowed: AllowanceRow) -> None:
    is_over = state.is_over
    if is_over and not damaged.of(run.run_id).can_resume:
        return
    label = "Raise limits and resume" if is_over else "Change limits"
    with st.popover(label, icon=":material/add_card:", width="stretch"):
        text = limits_form.draw(run, allowed)
        if st.button(label, key=f"more_budget:{run.run_id}", type="primary", disabled=not text):
            _set(run, text, is_over)


def _set(run: RunRow, text: str, is_over: bool) -> None:
    steer.send(run.run_id, CommandKind.SET_BUDGET, text)
    if not is_over:
        return
    try:
        with st.spinner("Starting the engine"):
            supervisor.resume(folder.find_run(run.run_id))
    except (EngineError, FileNotFoundError) as error:
        st.error(wording.plain(str(error)), icon=":material/error:")
