"""What a run has spent of its limits, by limit and by role, the way to go on with more, and the limits that all runs of
this machine keep to in one day."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import access, index, method, wording
from pages.parts.status import damaged
from pages.parts.steering import steer
from storage import folder, queries
from storage.queries import AllowanceRow, RunRow, SpendingRow
from storage.records import CommandKind, RunState

WARNING_SHARE = 0.8
NO_LIMIT = "no limit"
DAY_FIELDS = {"calls": "Calls per day", "tokens": "Tokens per day", "cost": "US dollars per day"}


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
            _day_limits()


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
        text = _limits_form(run, allowed)
        if st.button(label, key=f"more_budget:{run.run_id}", type="primary", disabled=not text):
            _set_limits(run, text, is_over)


def _set_limits(run: RunRow, text: str, is_over: bool) -> None:
    steer.send(run.run_id, CommandKind.SET_BUDGET, text)
    if not is_over:
        return
    try:
        with st.spinner("Starting the engine"):
            supervisor.resume(folder.find_run(run.run_id))
    except (EngineError, FileNotFoundError) as error:
        st.error(wording.plain(str(error)), icon=":material/error:")


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit in the unit it is typed in; `used` and `now` as people read them."""

    name: str
    label: str
    used: str
    now: str
    smallest: float = 1


def limits(run: RunRow, allowed: AllowanceRow) -> list[Limit]:
    """The limits that can be changed, in the order of the form."""
    calls, tokens, cost, wall = allowed.max_model_calls, allowed.max_tokens, allowed.max_cost_usd, allowed.max_wall_s
    return [
        Limit("depths", method.words(run.run_id).titles, str(run.depth or 0), str(allowed.depths)),
        Limit("calls", "Model calls", wording.count(run.model_calls), wording.count(calls) if calls else NO_LIMIT),
        Limit("tokens", "Tokens", wording.tokens(run.tokens), wording.tokens(tokens) if tokens else NO_LIMIT),
        Limit("cost", "US dollars", wording.cost(run.cost_usd), wording.cost(cost) if cost else NO_LIMIT, 0.01),
        Limit("minutes", "Minutes", wording.seconds(allowed.spent_s), wording.seconds(wall) if wall else NO_LIMIT),
    ]


def _limits_form(run: RunRow, allowed: AllowanceRow) -> str:
    """The fields; returns the change as `set_budget` takes it, empty while nothing is filled in."""
    st.caption("Empty fields stay as they are. A number is the new limit for the whole run, not an amount to add.")
    columns, given = st.columns(2), dict[Limit, float]()
    for number, limit in enumerate(limits(run, allowed)):
        with columns[number % 2]:
            whole = limit.smallest == 1
            value = st.number_input(
                limit.label, int(limit.smallest) if whole else limit.smallest, value=None, key=f"more_{limit.name}",
                placeholder=limit.now, help=f"the new limit; now {limit.now}",
            )  # fmt: skip
            st.caption(wording.plain(f"{limit.used} used{', ' if limit.now == NO_LIMIT else ' of '}{limit.now}"))
        if value is not None:
            given[limit] = value
    if given:
        changes = ", ".join(f"{limit.label.lower()} {limit.now} → {_short(value)}" for limit, value in given.items())
        st.caption(f":material/visibility: {wording.plain(f'From the next step on: {changes}.')}")
    return " ".join(f"{limit.name}={value}" for limit, value in given.items())


def _short(value: float) -> str:
    return wording.count(int(value)) if value == int(value) else f"{value:g}"


def _day_limits() -> None:
    """A form behind a button. An empty field is no limit."""
    with st.popover("Daily limits", icon=":material/today:", width="stretch"):
        try:
            now = supervisor.day_limits()
        except EngineError as error:
            st.error(wording.plain(str(error)), icon=":material/error:")
            return
        for words, used, allowed in supervisor.spent_today():
            st.caption(wording.plain(f"{used:g} of {allowed:g} {words.removesuffix(' of a day')} used today"))
        st.caption("For all runs together, from the next call on. Leave a field empty for no limit.")
        with st.form("day_limits", border=False):
            given = {
                name: st.number_input(label, 0.0, value=now.get(name), format="%g", key=f"day_{name}")
                for name, label in DAY_FIELDS.items()
            }
            if st.form_submit_button("Save daily limits", icon=":material/today:"):
                _set_day_limits({name: value for name, value in given.items() if value is not None})


def _set_day_limits(limits: dict[str, float]) -> None:
    try:
        supervisor.set_day_limits(limits)
    except (EngineError, OSError) as error:
        st.error(wording.plain(str(error)), icon=":material/error:")
    else:
        st.caption(":material/check: Saved. Applies from the next call on.")
