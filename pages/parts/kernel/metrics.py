"""Every figure of a profile beside that of the nearest profiled ancestor: what changed most first, then the whole call
and each launch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import streamlit as st

from pages.parts import wording
from pages.parts.kernel import metric_sense
from pages.parts.kernel.metric_sense import Judgement, Weighed
from pages.parts.widgets import table
from storage import counters, kernel_names
from storage.queries import MetricChangeRow

COLUMNS = [
    table.Column("metric", "Metric"),
    table.Column("value", "Value", "right"),
    table.Column("previous", "Before", "right"),
    table.Column("change", "Change", "right"),
]
FUNCTION_COLUMNS = [
    table.Column("function", "Function"),
    table.Column("value", "Share of samples", "right"),
]
MOST_FUNCTIONS = 8
ORDER = {counter.name: place for place, counter in enumerate(counters.COUNTERS)}
MOST_CHANGES = 10
CHANGE_COLUMNS = [
    table.Column("metric", "Metric"),
    table.Column("change", "Change", "nowrap", "better or worse for speed, by the metric's usual meaning"),
    table.Column("values", "Before → after", "wide"),
]
TONES = {Judgement.BETTER: "green", Judgement.WORSE: "red", Judgement.CHANGED: "gray", Judgement.SAME: "gray"}
ICONS = {Judgement.BETTER: "held", Judgement.WORSE: "broken"}


def draw_functions(changes: Sequence[MetricChangeRow]) -> None:
    """Where the time goes, the function with most of it first; nothing where it was not sampled."""
    functions = sorted((c for c in changes if c.launch < 0 and c.kernel), key=lambda c: -c.value)
    if functions:
        st.markdown("## Where the time goes")
        rows = [table.Row(f"{i}", function_cells(c)) for i, c in enumerate(functions[:MOST_FUNCTIONS])]
        table.draw("Profile metrics by function", FUNCTION_COLUMNS, rows, key="metrics:functions", is_compact=True)
        if len(functions) > MOST_FUNCTIONS:
            st.caption(f"Showing {MOST_FUNCTIONS} of {len(functions)} functions")


def draw_all(changes: Sequence[MetricChangeRow]) -> None:
    """Every figure of the call and of its launches, folded away."""
    whole = [c for c in changes if c.launch < 0 and not c.kernel]
    launches = [c for c in changes if c.launch >= 0]
    if whole:
        with st.expander("All metrics of the call", key="metrics:call", on_change="rerun") as folded:
            if folded.open:
                table.draw("Profile metrics, Whole call", COLUMNS, _rows(whole), key="metrics:whole", is_compact=True)
    if launches:
        with st.expander("All counters by launch", key="metrics:open", on_change="rerun") as folded:
            if folded.open:
                _launches(launches)


def _launches(changes: Sequence[MetricChangeRow]) -> None:
    # Trap: a component's key must not contain two underscores in a row, which kernel names do; so tables are numbered.
    for number, ((launch, kernel), group) in enumerate(groupby(changes, key=lambda c: (c.launch, c.kernel))):
        title = f"Launch {launch}: {kernel_names.short(kernel)}"
        st.markdown(f"## {wording.plain(title)}")
        table.draw(f"Profile metrics, {title}", COLUMNS, _rows(group), key=f"metrics:{number}", is_compact=True)


def _rows(changes: Iterable[MetricChangeRow]) -> list[table.Row]:
    """Figures of the product's own first, then counters in their known order."""
    ordered = sorted(changes, key=lambda c: ORDER.get(c.metric, len(ORDER) if "__" in c.metric else -1))
    return [table.Row(c.metric, _metric_cells(c)) for c in ordered]


def function_cells(row: MetricChangeRow) -> dict[str, table.Cell]:
    """One function of the call as cells."""
    value = wording.quantity(row.value, row.unit, row.metric.endswith("share"))
    return {"function": row.kernel, "value": value}


def _metric_cells(row: MetricChangeRow) -> dict[str, table.Cell]:
    """One metric as cells; a counter under its plain name, its own name and meaning behind the pointer."""
    is_share = row.metric.endswith("share")
    name, about = counters.label(row.metric), counters.meaning(row.metric)
    return {
        "metric": table.text(name, title=f"{row.metric}: {about}" if about else name),
        "value": wording.quantity(row.value, row.unit, is_share),
        "previous": wording.NONE if row.previous is None else wording.quantity(row.previous, row.unit, is_share),
        "change": _moved(row),
    }


def _moved(row: MetricChangeRow) -> table.Cell:
    """By how much it rose or fell: shares in points, everything else in percent or as a multiple."""
    if row.previous is None:
        return wording.NONE
    if row.unit == "%" or row.metric.endswith("share"):
        points = (row.value - row.previous) * (1 if row.unit == "%" else 100)
        return table.text("=", "muted") if abs(points) < 0.05 else table.text(f"{_arrow(points)} points", "strong")
    if row.ratio is None:
        return table.text("=", "muted") if row.value == row.previous else table.text("▲ from 0", "strong")
    percent = 100 * (row.ratio - 1)
    if abs(percent) < 0.5:
        return table.text("=", "muted")
    if percent > 200:
        return table.text(f"▲ {wording.significant(row.ratio, 2)} times", "strong")
    return table.text(f"{_arrow(percent)} %", "strong")


def _arrow(amount: float) -> str:
    return f"{'▲' if amount > 0 else '▼'} {wording.significant(abs(amount), 2)}"


def draw_changes(found: Sequence[Weighed], number: int, key: str) -> None:
    """The table; the unimportant rest on request."""
    moved = [one for one in found if one.judgement is not Judgement.SAME]
    st.markdown(f"## Changes since kernel {number}")
    if not moved:
        st.caption("No change beyond what two profiles of the same kernel differ by.")
        return
    is_all = len(moved) > MOST_CHANGES and st.session_state.get(f"{key}:all", False)
    shown = moved if is_all else moved[:MOST_CHANGES]
    rows = [table.Row(f"{i}", change_cells(one)) for i, one in enumerate(shown)]
    table.draw(
        f"Changes of the profile since kernel {number}", CHANGE_COLUMNS, rows, key=key, is_compact=True, is_folding=True
    )
    same = len(found) - len(moved)
    if len(moved) > MOST_CHANGES:
        st.toggle(f"Show all {len(moved)} (the {len(shown)} largest effects shown)", key=f"{key}:all")
    st.caption(f"Largest effect on speed first. {same} more metrics are unchanged.")


def change_cells(one: Weighed) -> dict[str, table.Cell]:
    """One change as cells."""
    change = one.change
    name, about = counters.label(change.metric), counters.meaning(change.metric)
    moved = _moved(change)
    amount = moved if isinstance(moved, str) else str((moved or {}).get("text", ""))
    values = f"{metric_sense.value(change, change.previous or 0.0)} → {metric_sense.value(change, change.value)}"
    return {
        "metric": table.text(name, "strong", title=f"{change.metric}: {about}" if about else ""),
        "change": table.pill(f"{amount}, {one.judgement}", TONES[one.judgement], ICONS.get(one.judgement, "")),
        "values": values,
    }


def counted(found: Sequence[Weighed], number: int | None) -> str:
    """ "Since kernel 4: 9 better, 1 worse, 2 changed, of 14 metrics."; empty without anything to compare with."""
    if number is None or not found:
        return ""
    by_judgement = [
        (sum(one.judgement is judgement for one in found), judgement)
        for judgement in Judgement
        if judgement is not Judgement.SAME
    ]
    counts = [f"{count} {judgement}" for count, judgement in by_judgement if count]
    return f"Since kernel {number}: {', '.join(counts) if counts else 'no change'}, of {len(found)} metrics."
