"""The overview's table: what each run is, how far it is, how fast it got. Pure but for drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from pages.parts import alert_list, table, wording
from pages.parts.alerts import Alert
from storage.queries import RunRow
from storage.records import RunState

COLUMNS = [
    table.Column("run", "Task"),
    table.Column("state", "State"),
    table.Column("depth", "Depth", help="completed optimisation steps of those allowed"),
    table.Column("best", "Best speed-up", "right", "over the eager baseline, with its 95 % interval"),
    table.Column("curve", "Curve", help="best speed-up so far after each depth, log scale"),
    table.Column("correct", "Correct", "right", "kernels that passed of those judged"),
    table.Column("tokens", "Tokens", "right"),
    table.Column("cost", "Cost", "right", "what the model calls cost; unknown when the provider states no price"),
    table.Column("age", "Last event", "right"),
]


def draw(shown: Sequence[RunRow], states: Mapping[str, RunState], alerts: Mapping[str, Sequence[Alert]]) -> str | None:
    """Draw the table; the id of the run opened just now, if any."""
    rows = [
        table.Row(run.run_id, _cells(run, states[run.run_id], alerts.get(run.run_id, ())), f"run?run={run.run_id}")
        for run in shown
    ]
    return table.draw("Runs, newest first", COLUMNS, rows, key="runs")


def headline(shown: Sequence[RunRow], states: Mapping[str, RunState], total: int, waiting: int) -> None:
    """How many runs need a person, of all there are, and how many of those shown are at work."""
    found = [states[run.run_id] for run in shown]
    parts = [f"{total:,} {'run' if total == 1 else 'runs'}"]
    if waiting:
        parts.append(f":orange-badge[{wording.STATE_ICON[RunState.WAITING]} {waiting:,} waiting for you]")
    parts += [
        f":{wording.STATE_TONE[state]}-badge[{wording.STATE_ICON[state]} {found.count(state)} {state}]"
        for state in (RunState.RUNNING, RunState.PAUSED, RunState.LOST, RunState.FAILED)
        if state in found
    ]
    st.markdown("  ".join(parts))


def _cells(run: RunRow, state: RunState, alerts: Sequence[Alert]) -> dict[str, table.Cell]:
    badges = [table.pill("demo", "gray")] if run.is_demo else []
    badges += alert_list.badge(alerts)
    return {
        "run": table.link(
            run.title, f"{run.kernel_class} · {run.toolchain} · {run.model} · {run.run_id[-20:]}", badges
        ),
        "state": table.pill(state, wording.STATE_TONE[state], state, run.state_reason, _why(run, state)),
        "depth": table.bar(f"{run.depth if run.depth is not None else 0} / {run.depths}", _progress(run)),
        "best": _best(run),
        "curve": table.spark(run.curve, f"{wording.speedup(run.best_speedup)} best"),
        "correct": table.text(wording.share(run.passed, run.passed + run.failed), title=run.last_error),
        "tokens": wording.tokens(run.tokens),
        "cost": table.text(wording.cost(run.cost_usd), "muted" if run.cost_usd is None else ""),
        "age": table.age(run.last_event_at),
    }


def _progress(run: RunRow) -> float:
    return min(1.0, (run.depth or 0) / run.depths) if run.depths else 0.0


def _best(run: RunRow) -> table.Cell:
    if run.best_speedup is None:
        return table.text(wording.NONE, "muted", "no correct kernel yet")
    tone = "green" if run.best_low and run.best_low > 1 else "strong"
    return table.text(wording.speedup(run.best_speedup), tone, wording.interval(run.best_low, run.best_high))


def _why(run: RunRow, state: RunState) -> str:
    if state is RunState.WAITING:
        return _short(run.waiting_reason)
    if state is RunState.LOST:
        return "engine is gone"
    return _short(run.state_reason) if state in (RunState.FAILED, RunState.STOPPED) else ""


def _short(text: str, length: int = 44) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
