"""The limits of one run, changed while it works; or raised, and the run goes on. Each field says what is used."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from pages.parts import index, method, number_field, wording
from pages.parts.steering import dialogs, steer
from storage.index import queries
from storage.index.queries import AllowanceRow, RunRow
from storage.run.settings import RunState
from storage.run.steering.verbs import CommandKind

NO_LIMIT = "no limit"
MORE = 1.5  # how far a limit that is used up is raised, unless another number is typed
BEYOND = (
    "The replies of this run are recorded. Where the recording ends, the run waits for a reply of yours, or for "
    "another model."
)


def label(is_over: bool) -> str:
    """What its button says."""
    return "Raise limits and resume" if is_over else "Change limits"


@st.dialog("Limits of this run", icon=":material/add_card:", on_dismiss=dialogs.close)
def change_limits(run: RunRow, state: RunState) -> None:
    """Fill in, see what follows, confirm; a run that is over is resumed."""
    dialogs.name_run(run.title, run.run_id)
    allowed = queries.allowance(index.current(), run.run_id)
    if allowed is None:
        st.info("This run has no limits to change yet.", icon=":material/hourglass_top:")
        return
    if state.is_over:
        st.markdown(wording.plain(why_over(run, state, raised(run, allowed))))
        if steer.is_recorded(run):
            st.caption(f":material/info: {BEYOND}")
    wrong: list[str] = []
    text = _limits_form(run, allowed, raised(run, allowed) if state.is_over else {}, wrong, is_over=state.is_over)
    if not text and not wrong:
        st.caption(f":material/info: Fill in a number to {'go on' if state.is_over else 'change a limit'}.")
    if dialogs.buttons("limits", label(state.is_over), ":material/add_card:", may=bool(text) and not wrong) and text:
        if steer.ask(run.run_id, CommandKind.SET_BUDGET, text) and state.is_over:
            steer.resume(run.run_id)
        dialogs.leave()


def raised(run: RunRow, allowed: AllowanceRow) -> dict[str, float]:
    """For each limit that is used up, by name, one with which the run can go on."""
    minutes = allowed.max_wall_s / 60 if allowed.max_wall_s is not None else None
    used: dict[str, tuple[float, float | None]] = {
        "depths": (run.depth or 0, allowed.depths if run.state is RunState.FINISHED else None),
        "calls": (run.model_calls, allowed.max_model_calls), "tokens": (run.tokens or 0, allowed.max_tokens),
        "cost": (run.cost_usd or 0.0, allowed.max_cost_usd), "minutes": (allowed.spent_s / 60, minutes),
    }  # fmt: skip
    return {
        name: round(MORE * limit, 2) if name == "cost" else max(limit + 1, math.ceil(MORE * limit))
        for name, (spent, limit) in used.items()
        if limit is not None and spent >= limit
    }


def why_over(run: RunRow, state: RunState, used_up: Mapping[str, float]) -> str:
    """Why the run is over, and what to do here so that it goes on."""
    ended = f"The run is {state}" + (f": {run.state_reason}. " if run.state_reason else ". ")
    if used_up:
        return ended + "The limit that is used up is raised below; change the number as you like."
    if state is RunState.FINISHED:
        return ended + (
            "None of these limits is used up, so raising one may not be enough: Go back or fork goes on from a kernel."
        )
    return ended + "None of these limits is used up: Resume run goes on within them."


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit in the unit it is typed in; `used` and `now` as people read them, `spent` what `used` says, of which
    `done` is the verb: the step index under way has begun, and is not counted as done elsewhere."""

    name: str
    label: str
    used: str
    now: str
    spent: float
    smallest: float = 1
    done: str = "used"


def limits(run: RunRow, allowed: AllowanceRow) -> list[Limit]:
    """The limits that can be changed, in the order of the form."""
    calls, tokens, cost, wall = allowed.max_model_calls, allowed.max_tokens, allowed.max_cost_usd, allowed.max_wall_s
    depth, minutes = run.depth or 0, math.ceil(allowed.spent_s / 60)
    return [
        Limit("depths", method.words(run.run_id).limited, str(depth), str(allowed.depths), depth,
              done="begun"),
        Limit("calls", "Model calls", wording.count(run.model_calls), wording.count(calls) if calls else NO_LIMIT,
              run.model_calls),
        Limit("tokens", "Tokens", wording.tokens(run.tokens, run.model),
              wording.tokens(tokens) if tokens else NO_LIMIT, run.tokens or 0),
        Limit("cost", "US dollars", wording.cost(run.cost_usd, run.model), wording.cost(cost) if cost else NO_LIMIT,
              run.cost_usd or 0.0, 0.01),
        Limit("minutes", "Minutes", wording.seconds(allowed.spent_s), wording.seconds(wall) if wall else NO_LIMIT,
              minutes),
    ]  # fmt: skip


def _limits_form(
    run: RunRow, allowed: AllowanceRow, filled: Mapping[str, float], wrong: list[str], *, is_over: bool
) -> str:
    """The fields, some filled in; returns the change as `set_budget` takes it, empty while nothing is filled in. A run
    that is over goes on only with more than it has used."""
    st.caption("Empty fields stay as they are. A number is the new limit for the whole run, not an amount to add.")
    columns, given = st.columns(2), dict[Limit, float]()
    for number, limit in enumerate(limits(run, allowed)):
        with columns[number % 2]:
            unit = int if limit.smallest == 1 else float
            least = limit.smallest + limit.spent if is_over else limit.smallest
            value = number_field.draw(
                st.container(), limit.label, f"more_{limit.name}",
                unit(filled[limit.name]) if limit.name in filled else None, unit(least), wrong,
                placeholder=limit.now, help=f"the new limit; now {limit.now}",
            )  # fmt: skip
            st.caption(
                wording.plain(f"{limit.used} {limit.done}{', ' if limit.now == NO_LIMIT else ' of '}{limit.now}")
            )
        if value is not None:
            given[limit] = value
    if given:
        changes = ", ".join(f"{limit.label.lower()} {limit.now} → {_short(value)}" for limit, value in given.items())
        st.caption(f":material/visibility: {wording.plain(f'From the next step on: {changes}.')}")
    return " ".join(f"{limit.name}={value}" for limit, value in given.items())


def _short(value: float) -> str:
    return wording.count(int(value)) if value == int(value) else f"{value:g}"
