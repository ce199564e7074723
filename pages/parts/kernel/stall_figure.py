"""What warps wait for, as shares, in a Plotly figure. Pure."""

from __future__ import annotations

import html
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


def figure(found: Mapping[str, float], before: Mapping[str, float] | None = None, name: str = "") -> dict[str, Any]:
    """Horizontal bars, the longest on top, with what each reason means behind the pointer; those of the kernel `name`
    that it is compared with stand below each in gray."""
    names = list(found)[:MOST]
    traces = [_bars("this kernel", found, names, "@violet-color/70")]
    if before:
        traces.append(_bars(html.escape(name), before, names, "@gray-color/60"))
    axis = {"gridcolor": "@border-color", "zeroline": False}
    layout = {
        "showlegend": bool(before), "margin": {"l": 8, "r": 44, "t": 26 if before else 6, "b": 36},
        "paper_bgcolor": "rgba(0,0,0,0)", "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
        "plot_bgcolor": "rgba(0,0,0,0)", "font": {"color": "@text-color", "size": 12}, "bargap": 0.3,
        "uirevision": "stalls", "xaxis": axis | {"ticksuffix": " %", "rangemode": "tozero"},
        "yaxis": axis | {"autorange": "reversed", "automargin": True},
    }  # fmt: skip
    return {"data": traces, "layout": layout}


def _bars(name: str, found: Mapping[str, float], names: Sequence[str], colour: str) -> dict[str, Any]:
    told = [f"waiting for {counters.STALLS.get(reason, reason)}" for reason in names]
    return {
        "type": "bar", "orientation": "h", "name": name, "x": [100 * found.get(reason, 0.0) for reason in names],
        "y": [reason.replace("_", " ") for reason in names], "marker": {"color": colour},
        "text": [f"{wording.significant(100 * found.get(reason, 0.0), 2)} %" for reason in names],
        "textposition": "outside", "cliponaxis": False,
        "hovertext": told, "hovertemplate": "%{hovertext}: %{x:.3g} %<extra></extra>",
    }  # fmt: skip


def height(found: Mapping[str, float], before: Mapping[str, float] | None = None) -> int:
    """Pixels that so many rows need."""
    return (76 if before else 56) + (40 if before else ROW_PX) * min(len(found), MOST)
