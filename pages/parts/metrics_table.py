"""Every figure of a profile beside that of the nearest profiled ancestor: the whole call, then launch by launch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import streamlit as st

from pages.parts import table, wording
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
    table.Column("metric", "Metric"),
    table.Column("value", "Value", "right"),
]
ORDER = {counter.name: place for place, counter in enumerate(counters.COUNTERS)}


def draw(changes: Sequence[MetricChangeRow]) -> None:
    """The whole call open, its functions largest first, launches folded away where there is a whole call."""
    functions = sorted((c for c in changes if c.launch < 0 and c.kernel), key=lambda c: -c.value)
    whole = [c for c in changes if c.launch < 0 and not c.kernel]
    launches = [c for c in changes if c.launch >= 0]
    if whole:
        st.markdown("###### Whole call")
        table.draw("Profile metrics, Whole call", COLUMNS, _rows(whole), key="metrics:whole", is_compact=True)
    if functions:
        st.markdown("###### Where the time goes")
        rows = [table.Row(f"{i}", function_cells(c)) for i, c in enumerate(functions)]
        table.draw("Profile metrics by function", FUNCTION_COLUMNS, rows, key="metrics:functions", is_compact=True)
    if launches:
        with st.expander("Every counter, launch by launch", key="metrics:open", on_change="rerun") as folded:
            if folded.open:
                _launches(launches)


def _launches(changes: Sequence[MetricChangeRow]) -> None:
    # Trap: a component's key must not contain two underscores in a row, which kernel names do; so tables are numbered.
    for number, ((launch, kernel), group) in enumerate(groupby(changes, key=lambda c: (c.launch, c.kernel))):
        title = f"Launch {launch}: {kernel_names.short(kernel)}"
        st.markdown(f"###### {wording.plain(title)}")
        table.draw(f"Profile metrics, {title}", COLUMNS, _rows(group), key=f"metrics:{number}", is_compact=True)


def _rows(changes: Iterable[MetricChangeRow]) -> list[table.Row]:
    """Figures of the product's own first, then counters in their known order."""
    ordered = sorted(changes, key=lambda c: ORDER.get(c.metric, len(ORDER) if "__" in c.metric else -1))
    return [table.Row(c.metric, cells(c)) for c in ordered]


def function_cells(change: MetricChangeRow) -> dict[str, table.Cell]:
    """One function of the call as cells."""
    value = wording.quantity(change.value, change.unit, change.metric.endswith("share"))
    return {"function": change.kernel, "metric": change.metric.replace("_", " "), "value": value}


def cells(change: MetricChangeRow) -> dict[str, table.Cell]:
    """One metric as cells; a counter under its plain name, its own name and meaning behind the pointer."""
    is_share = change.metric.endswith("share")
    name, about = counters.label(change.metric), counters.meaning(change.metric)
    return {
        "metric": table.text(name, title=f"{change.metric}: {about}") if about else name,
        "value": wording.quantity(change.value, change.unit, is_share),
        "previous": wording.NONE
        if change.previous is None
        else wording.quantity(change.previous, change.unit, is_share),
        "change": _change(change),
    }


def _change(change: MetricChangeRow) -> table.Cell:
    if change.ratio is None:
        return wording.NONE
    percent = 100 * (change.ratio - 1)
    if abs(percent) < 0.5:
        return table.text("=", "muted")
    return table.text(f"{'▲' if percent > 0 else '▼'} {wording.significant(abs(percent), 2)} %", "strong")
