"""What a run has spent of its limits, by limit and by role, the way to go on with more, the limits that all runs of
this machine keep to in one day; what its calls came to; and where its time went."""

from __future__ import annotations

import time

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import access, index, number_field, wording
from pages.parts.status import damaged, no_kernel, outcome, pinned_snapshot, waiting_strip
from pages.parts.steering import dialogs, limits_dialog
from pages.parts.widgets import bars as bar_list
from storage.home import home
from storage.index import queries
from storage.index.queries import AllowanceRow, RunRow, SpendingRow
from storage.run.settings import RunState

WARNING_SHARE = 0.8
DAY_FIELDS = {"calls": "Calls per day", "tokens": "Tokens per day", "cost": "US dollars per day"}


def draw(run: RunRow, state: RunState, shown: RunRow) -> None:
    """Bars for the limits that are set, other limits, what the calls came to, and those of each role on demand. The
    figures are those of `shown`, the run at the moment that its page shows; limits are set for the run as it is now."""
    with pinned_snapshot.view(run.run_id):
        allowed = queries.allowance(index.current(), run.run_id)
        rows = queries.spending(index.current(), run.run_id)
        call_bars = outcome.call_bars(index.current(), run.run_id)
    if allowed is None:
        return
    with st.container(border=True, key="spending"):
        st.markdown("## Spending")
        for text, share in bars(shown, allowed):
            st.progress(min(share, 1.0), text=f"{text}{_near(share)}")
        may_change = access.may_steer() and not run.is_example and not run.replay_of
        if may_change:  # above what grows while the run goes on
            _other_limits(run, state)
            _day_limits()
        if not rows:
            st.caption("No model calls yet.")
        else:
            bar_list.draw(outcome.CALLS_TITLE, call_bars, "", key="call_outcomes")
            if st.toggle("Calls by role", key="spending_by_role"):
                for row in rows:
                    st.caption(line(row, run.model))
        _unknown(rows)
        if run.replay_of:
            st.caption("A replay costs nothing; these are the costs of the original run.")


def _near(share: float) -> str:
    """What stands beside a limit that is nearly reached, in its own line: what is below keeps its place."""
    if share < WARNING_SHARE:
        return ""
    return f" :orange[:material/warning: {'limit reached' if share >= 1 else '80 % used'}]"


def draw_time(run: RunRow, state: RunState) -> None:
    """Where the engine time went, a bar for each stage, and who waited for what; nothing before the first step has
    ended."""
    time_bars = outcome.time_bars(index.current(), run.run_id)
    if not time_bars:
        return
    is_live = not state.is_over and pinned_snapshot.of(run.run_id) is None
    strip = waiting_strip.of_run(index.current(), run.run_id, time.time() if is_live else run.last_event_at or 0.0)
    with st.container(border=True, key="time_spent"):
        st.markdown(f"## {outcome.TIME_TITLE}", help=outcome.TIME_ABOUT)
        bar_list.draw("", time_bars, "", key="time_by_stage")
        if strip:
            said = waiting_strip.sentence(strip)
            st.markdown(f"**{waiting_strip.TITLE}**", help=f"{waiting_strip.ABOUT} {waiting_strip.OF_RUN}")
            st.caption(wording.plain(said))
            waiting_strip.draw(strip, said, key="who_waited")


def bars(run: RunRow, allowed: AllowanceRow) -> list[tuple[str, float]]:
    """(words, share used) of every limit that is set."""
    shares = []
    if allowed.max_model_calls is not None:
        text = f"Calls: {wording.count(run.model_calls)} of {wording.count(allowed.max_model_calls)}"
        shares.append((text, run.model_calls / allowed.max_model_calls))
    if allowed.max_tokens is not None:
        text = f"Tokens: {wording.tokens(run.tokens, run.model)} of {wording.tokens(allowed.max_tokens)}"
        shares.append((text, (run.tokens or 0) / allowed.max_tokens))
    if allowed.max_cost_usd is not None:
        spent = wording.cost(run.cost_usd, run.model)
        text = f"Cost: {spent} of {wording.cost(allowed.max_cost_usd)}".replace("$", "\\$")
        shares.append((text, (run.cost_usd or 0.0) / allowed.max_cost_usd))
    if allowed.max_wall_s is not None:
        text = f"Engine time: {wording.seconds(allowed.spent_s)} of {wording.seconds(allowed.max_wall_s)}"
        shares.append((text, allowed.spent_s / allowed.max_wall_s))
    return shares


def line(row: SpendingRow, writer: str) -> str:
    """The calls of one role, in a run whose replies are by `writer`, in one line."""
    by = wording.told_as(row.model, writer)
    read = f"{wording.tokens(row.input_tokens)} tokens in ({wording.tokens(row.cached_tokens)} from cache)"
    written = f"{wording.tokens(row.output_tokens)} out ({wording.tokens(row.reasoning_tokens)} reasoning)"
    calls = wording.counted(row.calls, "call")
    guessed = f" · {wording.count(row.estimated)} estimated" if row.estimated else ""
    size = f"{read}, {written}{guessed}"
    if row.uncounted == row.calls:
        size = "tokens not told"
    if why := wording.why_none(row.input_tokens + row.output_tokens, by):
        size = "no model was called"
        if why == wording.NOT_RECORDED:
            return f"**{wording.plain(row.role)}** · {calls} · {wording.NOTHING_RECORDED} · {wording.plain(row.model)}"
    cost = wording.plain(wording.cost(row.cost_usd, row.model))
    return f"**{wording.plain(row.role)}** · {cost} · {calls} · {size} · {wording.plain(row.model)}"


def _unknown(rows: list[SpendingRow]) -> None:
    unpriced = sorted({row.model for row in rows if row.cost_usd is None})
    uncounted = sum(row.uncounted for row in rows)
    if unpriced:
        names = ", ".join(map(wording.plain, unpriced))
        st.caption(f"Cost of {names} unknown: add the price to prices.toml in {home()}.")
    if uncounted:
        st.caption(f"How many tokens {wording.counted(uncounted, 'call')} took was not told by what answered.")


def _other_limits(run: RunRow, state: RunState) -> None:
    is_over = state.is_over
    if is_over and (no_kernel.gave_none(run, state) or not damaged.of(run.run_id).can_resume):
        return
    st.button(
        limits_dialog.label(is_over), icon=":material/add_card:", key=f"limits:{run.run_id}", width="stretch",
        on_click=dialogs.ask, args=(dialogs.Dialog.LIMITS, run.run_id),
    )  # fmt: skip


def _day_limits() -> None:
    """A form behind a button. An empty field is no limit."""
    fold = st.popover("Daily limits", icon=":material/today:", width="stretch", key="daily_limits", on_change="rerun")
    if not fold.open:
        return
    with fold:
        try:
            now = supervisor.day_limits()
        except EngineError as error:
            st.error(wording.sentence(str(error)), icon=":material/error:")
            return
        for words, used, allowed in supervisor.spent_today():
            st.caption(wording.plain(f"{used:g} of {allowed:g} {words.removesuffix(' of a day')} used today"))
        st.caption("For all runs together, from the next call on. Leave a field empty for no limit.")
        with st.form("day_limits", border=False):
            wrong: list[str] = []
            given = {
                name: number_field.draw(st.container(), label, f"day_{name}", now.get(name), 0.0, wrong, format="%g")
                for name, label in DAY_FIELDS.items()
            }
            if st.form_submit_button("Save daily limits", icon=":material/today:") and not wrong:
                _set_day_limits({name: value for name, value in given.items() if value is not None})


def _set_day_limits(limits: dict[str, float]) -> None:
    try:
        supervisor.set_day_limits(limits)
    except (EngineError, OSError) as error:
        st.error(wording.sentence(str(error)), icon=":material/error:")
    else:
        st.caption(":material/check: Saved. Applies from the next call on.")
