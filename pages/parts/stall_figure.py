"""What warps wait for, as shares, in a Plotly figure. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pages.parts import wording
from storage import counters
from storage.queries import MetricRow

LEAST = 0.01
MOST = 8
ROW_PX = 26


def shares(rows: Sequence[MetricRow], launch: int) -> dict[str, float]:
    """Each reason's share (0..1) of the time that warps of a launch (-1: of the call) wait, largest first."""
    waits = {
        reason: row.value
        for row in rows
        if row.launch == launch and (reason := counters.stall_reason(row.metric)) not in (None, "selected")
        if reason
    }
    total = sum(waits.values())
    ordered = sorted(waits.items(), key=lambda one: -one[1])
    return {name: wait / total for name, wait in ordered if wait >= LEAST * total} if total else {}


def figure(found: Mapping[str, float]) -> dict[str, Any]:
    """Horizontal bars, the longest on top, with what each reason means behind the pointer."""
    names = list(found)[:MOST]
    told = [f"waiting for {counters.STALLS.get(name, name)}" for name in names]
    bars = {
        "type": "bar", "orientation": "h", "x": [100 * found[name] for name in names],
        "y": [name.replace("_", " ") for name in names], "marker": {"color": "@violet-color/70"},
        "text": [f"{wording.significant(100 * found[name], 2)} %" for name in names],
        "textposition": "outside", "cliponaxis": False,
        "hovertext": told, "hovertemplate": "%{hovertext}: %{x:.3g} %<extra></extra>",
    }  # fmt: skip
    axis = {"gridcolor": "@border-color", "zeroline": False}
    layout = {
        "showlegend": False, "margin": {"l": 8, "r": 44, "t": 6, "b": 36}, "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)", "font": {"color": "@text-color", "size": 12}, "bargap": 0.35,
        "uirevision": "stalls", "xaxis": axis | {"ticksuffix": " %", "rangemode": "tozero"},
        "yaxis": axis | {"autorange": "reversed", "automargin": True},
    }  # fmt: skip
    return {"data": [bars], "layout": layout}


def height(found: Mapping[str, float]) -> int:
    """Pixels that so many bars need."""
    return 48 + ROW_PX * min(MOST, len(found))
