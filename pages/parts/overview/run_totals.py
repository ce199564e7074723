"""Above the list of runs: how many there are and what they are at, kernels accepted, tokens and money of today, the
best gain. And the list in groups, one line for all runs of a task, a model, a strategy or a tag."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime

import streamlit as st

from pages.parts import wording
from pages.parts.overview import runs_filter
from pages.parts.widgets import figures, table
from pages.parts.widgets.figures import Figure
from storage.index.queries import GroupBy, GroupRow, RunTotals, StateCount
from storage.run.settings import RunState

HEADLINE_STATES = (RunState.RUNNING, RunState.PAUSED, RunState.LOST, RunState.FAILED)


def midnight(now: float | None = None) -> float:
    """When today began, in the time zone of this machine."""
    day = datetime.fromtimestamp(time.time() if now is None else now).astimezone()
    return day.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


def headline(total: int, counts: Sequence[StateCount], waiting: int, examples: int = 0, replays: int = 0) -> None:
    """How many runs there are, examples and replays apart, how many need a person, how many are at work or in
    trouble."""
    by_state = {row.state: row.runs for row in counts}
    parts = [f"{total:,} {'run' if total == 1 else 'runs'}"]
    if examples:
        parts.append(f":gray-badge[:material/school: {wording.counted(examples, 'example')}]")
    if replays:
        parts.append(f":violet-badge[:material/replay: {wording.counted(replays, 'replay')}]")
    if waiting:
        parts.append(f":orange-badge[{wording.STATE_ICON[RunState.WAITING]} {waiting:,} waiting for you]")
    parts += [
        f":{wording.STATE_TONE[state]}-badge[{wording.STATE_ICON[state]} {by_state[state]:,} "
        f"{wording.STATE_NAME[state]}]"
        for state in HEADLINE_STATES
        if by_state.get(state)
    ]
    st.markdown("  ".join(parts), width="content")


def draw(counts: Sequence[StateCount], totals: RunTotals) -> None:
    """The figures, in a strip."""
    figures.draw("Totals of all runs", of_runs(counts, totals), key="totals", is_strip=True)


def of_runs(counts: Sequence[StateCount], totals: RunTotals) -> list[Figure]:
    """What the strip says."""
    by_state = {row.state: row.runs for row in counts}
    told = totals.calls_since - totals.unrecorded_since
    is_priced, is_counted = told > totals.unpriced_since, told > totals.uncounted_since or not totals.calls_since
    nothing = wording.NONE if told or not totals.calls_since else wording.UNRECORDED
    cost = wording.paid(totals.cost_usd_since) if is_priced else nothing
    unpriced = f"{wording.counted(totals.unpriced_since, 'call')} without a price" if totals.unpriced_since else ""
    unpriced = f"and {unpriced}" if is_priced and unpriced else unpriced
    untold = f", tokens of {totals.uncounted_since:,} {wording.UNTOLD}" if totals.uncounted_since else ""
    if totals.unrecorded_since and told:
        unrecorded = f"{totals.unrecorded_since:,} {wording.UNRECORDED}"
        untold += f", tokens of {unrecorded}"
        unpriced = f"{unpriced}, cost of {unrecorded}".removeprefix(", ")
    tokens = wording.tokens(totals.tokens_since) if is_counted else wording.UNTOLD if told else wording.UNRECORDED
    today = f"{totals.accepted_since:,} today" if totals.accepted_since else ""
    return [
        Figure("Running", f"{by_state.get(RunState.RUNNING, 0):,}"),
        Figure("Kernels accepted", f"{totals.accepted:,}", today, "kernels that became the result of their step"),
        Figure("Tokens today", tokens, f"{wording.counted(totals.calls_since, 'call')}{untold}"),
        Figure("Money today", cost, unpriced, "model calls since midnight; prices are those of prices.toml"),
        Figure(
            "Best speed-up", wording.best(totals),
            _best_of(totals), f"over eager PyTorch, of all runs; run {totals.best_run}" if totals.best_run else "",
        ),
    ]  # fmt: skip


def _best_of(totals: RunTotals) -> str:
    if totals.best_task is None:
        return ""
    spread = wording.beside(totals.best_noise, totals.best_low, totals.best_high)
    return f"{spread} · {wording.task(totals.best_task)}"


COLUMNS = [
    table.Column("name", "Group", "line"),
    table.Column("runs", "Runs", "right"),
    table.Column("working", "At work", "right", "starting, running, paused or waiting"),
    table.Column("solved", "With a correct kernel", "right", "runs with a correct, timed kernel, of all runs"),
    table.Column(
        "mean",
        "Mean best",
        "right",
        "geometric mean of the runs' best speed-ups over eager; a vague one counts by the timing that was kept",
    ),
    table.Column("best", "Best", "right", "the best speed-up of any run of the group"),
    table.Column("accepted", "Kernels accepted", "right"),
    table.Column("calls", "Model calls", "right", "of all runs of the group; replays make none"),
    table.Column("tokens", "Tokens", "right", "of these calls, as far as they are known"),
    table.Column("cost", "Cost", "right", "of these calls, as far as it is known"),
    table.Column("age", "Last run", "right"),
]


def draw_groups(by: GroupBy, rows: Sequence[GroupRow]) -> None:
    """One line a group; a click shows its runs."""
    table_rows = [
        table.Row(row.name, _cells(by, row), f"?{runs_filter.OF_GROUP[by]}={row.name}", row.name) for row in rows
    ]
    opened = table.draw(f"Runs by {by}", COLUMNS, table_rows, key=f"groups:{by}", is_cards=True, is_lines=True)
    if opened is not None:
        runs_filter.ask({runs_filter.OF_GROUP[by]: opened, runs_filter.GROUP: ""})


def _cells(by: GroupBy, row: GroupRow) -> dict[str, table.Cell]:
    model = row.name if by is GroupBy.MODEL else ""
    name = wording.task(row.name) if by is GroupBy.TASK else row.name
    unpriced = f"{wording.counted(row.unpriced_calls, 'call')} without a price" if row.unpriced_calls else ""
    unrecorded = f"{wording.counted(row.unrecorded_calls, 'call')} {wording.UNRECORDED}" if row.unrecorded_calls else ""
    return {
        "name": table.link(name) if row.name else table.text(f"without a {by}", "muted"),
        "runs": f"{row.runs:,}",
        "working": f"{row.working:,}" if row.working else table.text(wording.NONE, "muted"),
        "solved": table.text(f"{row.solved:,}", "", wording.percent(row.solved / row.runs)),
        "mean": wording.speedup(row.mean_speedup),
        "best": table.text(wording.best(row), wording.gain_tone(row.best_low, row.best_high)),
        "accepted": f"{row.accepted:,}",
        "calls": f"{row.model_calls:,}",
        "tokens": _tokens(row, model),
        "cost": table.text(_cost(row, model), "", "", ", ".join(filter(None, [unpriced, unrecorded]))),
        "age": table.age(row.last_created_at),
    }


def _tokens(row: GroupRow, model: str) -> str:
    """Of calls that tell none what the others took is the least that all did."""
    if not (row.uncounted_calls or row.unrecorded_calls):
        return wording.tokens(row.tokens, model)
    nothing = wording.UNRECORDED if row.unrecorded_calls else wording.UNTOLD
    return f"at least {wording.tokens(row.tokens)}" if row.tokens else nothing


def _cost(row: GroupRow, model: str) -> str:
    """Of calls without a price what the others cost is the least that all did."""
    if not (row.unpriced_calls or row.unrecorded_calls):
        return wording.paid(row.cost_usd, model)
    nothing = wording.UNRECORDED if row.unrecorded_calls else wording.UNKNOWN
    return f"at least {wording.paid(row.cost_usd)}" if row.cost_usd else nothing
