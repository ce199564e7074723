"""What changed in the profile since the nearest profiled ancestor, what matters most first."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.parts.kernel import metric_sense, metrics_table
from pages.parts.kernel.metric_sense import Judgement, Weighed
from pages.parts.widgets import table
from storage import counters

MOST = 10
COLUMNS = [
    table.Column("metric", "Metric"),
    table.Column("change", "Change", "nowrap", "better or worse for speed, by the metric's usual meaning"),
    table.Column("values", "Before → after", "wide"),
]
TONES = {Judgement.BETTER: "green", Judgement.WORSE: "red", Judgement.CHANGED: "gray", Judgement.SAME: "gray"}
ICONS = {Judgement.BETTER: "held", Judgement.WORSE: "broken"}


def draw(found: Sequence[Weighed], number: int, key: str) -> None:
    """The table; the unimportant rest on request."""
    moved = [one for one in found if one.judgement is not Judgement.SAME]
    st.markdown(f"## Changes since kernel {number}")
    if not moved:
        st.caption("No change beyond what two profiles of the same kernel differ by.")
        return
    is_all = len(moved) > MOST and st.session_state.get(f"{key}:all", False)
    shown = moved if is_all else moved[:MOST]
    rows = [table.Row(f"{i}", cells(one)) for i, one in enumerate(shown)]
    table.draw(
        f"Changes of the profile since kernel {number}", COLUMNS, rows, key=key, is_compact=True, is_folding=True
    )
    same = len(found) - len(moved)
    if len(moved) > MOST:
        st.toggle(f"Show all {len(moved)} (the {len(shown)} largest effects shown)", key=f"{key}:all")
    st.caption(f"Largest effect on speed first. {same} more metrics are unchanged.")


def cells(one: Weighed) -> dict[str, table.Cell]:
    """One change as cells."""
    change = one.change
    name, about = counters.label(change.metric), counters.meaning(change.metric)
    moved = metrics_table.change(change)
    told = moved if isinstance(moved, str) else str((moved or {}).get("text", ""))
    values = f"{metric_sense.value(change, change.previous or 0.0)} → {metric_sense.value(change, change.value)}"
    return {
        "metric": table.text(name, "strong", title=f"{change.metric}: {about}" if about else ""),
        "change": table.pill(f"{told}, {one.judgement}", TONES[one.judgement], ICONS.get(one.judgement, "")),
        "values": values,
    }


def counted(found: Sequence[Weighed], number: int | None) -> str:
    """ "Since kernel 4: 9 better, 1 worse, 2 changed, of 14 metrics."; empty without anything to compare with."""
    if number is None or not found:
        return ""
    kinds = [(sum(one.judgement is kind for one in found), kind) for kind in Judgement if kind is not Judgement.SAME]
    told = [f"{count} {kind}" for count, kind in kinds if count]
    return f"Since kernel {number}: {', '.join(told) if told else 'no change'}, of {len(found)} metrics."
