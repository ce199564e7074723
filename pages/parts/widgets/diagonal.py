"""Predicted against measured gains as points about a diagonal, both on log scales of the same length. Knows no run."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pages.parts.widgets import plot

HEIGHT = 340


@dataclass(frozen=True, slots=True)
class Point:
    """One prediction that was measured. `hover` is HTML; `opens` is what `plot.draw` returns when it is clicked."""

    predicted: float
    measured: float
    hover: str
    opens: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Points that share a name in the legend, a theme's colour and a symbol."""

    name: str
    colour: str
    symbol: str
    points: Sequence[Point]


def figure(groups: Sequence[Group], over: str, revision: str) -> dict[str, Any]:
    """On the dashed line a change gained what was predicted; below the dotted line it made the kernel slower.

    `over` is what gains are over.
    """
    values = [value for group in groups for point in group.points for value in (point.predicted, point.measured)]
    low, high = min([*values, 1.0]) / 1.1, max([*values, 1.0]) * 1.1
    ends = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "showlegend": False}
    lines = [
        ends | {"x": [low, high], "y": [low, high], "line": {"color": "@gray-color", "width": 1.2, "dash": "dash"}},
        ends | {"x": [low, high], "y": [1.0, 1.0], "line": {"color": "@gray-color", "width": 1, "dash": "dot"}},
    ]
    axis = {
        "type": "log", "range": [math.log10(low), math.log10(high)], "gridcolor": "@border-color", "zeroline": False,
        "tickvals": plot.log_ticks(low, high), "ticksuffix": "×", "tickformat": "~g",
    }  # fmt: skip
    small = {"size": 12}
    layout = {
        "uirevision": revision, "hovermode": "closest", "margin": {"l": 58, "r": 14, "t": 14, "b": 44},
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)", "showlegend": len(groups) > 1,
        "font": {"color": "@text-color", "size": 12},
        "xaxis": {"title": {"text": f"predicted gain over {over}", "font": small, "standoff": 6}, **axis},
        "yaxis": {"title": {"text": "measured gain", "font": small, "standoff": 6}, **axis},
    }  # fmt: skip
    return {"data": [*lines, *map(_trace, groups)], "layout": layout}


def _trace(group: Group) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "markers", "name": html.escape(group.name, quote=False),
        "x": [point.predicted for point in group.points], "y": [point.measured for point in group.points],
        "marker": {"color": group.colour, "symbol": group.symbol, "size": 8, "opacity": 0.75},
        "text": [point.hover for point in group.points], "customdata": [point.opens or None for point in group.points],
        "hovertemplate": "%{text}<extra></extra>",
    }  # fmt: skip
