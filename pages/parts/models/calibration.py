"""What each model predicted that its changes would gain, against what they gained: a table and a picture."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages.parts import index, wording
from pages.parts.widgets import plot, table
from storage import queries
from storage.queries import CalibrationRow, PredictionRow

COLUMNS = [
    table.Column("model", "Model", "nowrap"),
    table.Column("predictions", "Predictions", "right", "changes whose gain over the base kernel was predicted"),
    table.Column("measured", "Measured", "right", "of these, led to a correct kernel that was timed"),
    table.Column("promised", "Median predicted", "right", "gain over the base kernel, of the measured ones"),
    table.Column("gained", "Median measured", "right", "gain over the base kernel"),
    table.Column(
        "ratio", "Measured / predicted", "right", "median of the ratios; below 1 the model promises more than it gains"
    ),
]
HEIGHT = 340
COLOURS = ("@blue-color", "@orange-color", "@violet-color", "@green-color", "@red-color", "@gray-color")
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "star")


def draw() -> None:
    """A row per model, and a point per prediction that was measured."""
    found, measured = queries.calibration(index.current()), queries.measured_predictions(index.current())
    st.markdown("## Predicted and measured gain")
    if not found:
        st.caption("No gain predicted yet: a model is asked for one with each optimisation.")
        return
    rows = [table.Row(row.model, cells(row)) for row in found]
    table.draw("Predicted and measured gain by model", COLUMNS, rows, key="calibration", is_cards=True)
    if measured:
        words = f"Measured against predicted gain of {wording.counted(len(measured), 'kernel')}, a point each"
        plot.draw(figure(measured), words, HEIGHT, "calibration", key="calibration_points")
    st.caption(
        "All runs. Gain: latency of the base kernel over that of the new one, or of its repair where it was mended "
        "first. On the dashed line a change gained what was predicted; below the dotted line it made the kernel slower."
    )


def cells(row: CalibrationRow) -> dict[str, table.Cell]:
    """One model as cells."""
    return {
        "model": table.text(row.model, "strong"),
        "predictions": wording.count(row.predictions),
        "measured": wording.share(row.measured, row.predictions),
        "promised": wording.speedup(row.median_predicted),
        "gained": wording.speedup(row.median_measured),
        "ratio": wording.NONE if row.median_ratio is None else wording.significant(row.median_ratio),
    }


def figure(measured: Sequence[PredictionRow]) -> dict[str, Any]:
    """A point for each prediction whose kernel was measured, by model, on log scales of the same length."""
    models = list(dict.fromkeys(row.model for row in measured))
    values = [value for row in measured for value in (row.predicted, _gain(row)) if value]
    low, high = min([*values, 1.0]) / 1.1, max([*values, 1.0]) * 1.1
    ends = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "showlegend": False}
    lines = [
        ends | {"x": [low, high], "y": [low, high], "line": {"color": "@gray-color", "width": 1.2, "dash": "dash"}},
        ends | {"x": [low, high], "y": [1.0, 1.0], "line": {"color": "@gray-color", "width": 1, "dash": "dot"}},
    ]
    axis = {
        "type": "log", "range": [math.log10(low), math.log10(high)], "gridcolor": "@border-color", "zeroline": False,
        "tickvals": plot.COARSE if high > 4 * low else plot.FINE, "ticksuffix": "×", "tickformat": "~g",
    }  # fmt: skip
    small = {"size": 12}
    layout = {
        "uirevision": "calibration", "hovermode": "closest", "margin": {"l": 58, "r": 14, "t": 14, "b": 44},
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)", "showlegend": len(models) > 1,
        "font": {"color": "@text-color", "size": 12},
        "xaxis": {"title": {"text": "predicted gain over the base kernel", "font": small, "standoff": 6}, **axis},
        "yaxis": {"title": {"text": "measured gain", "font": small, "standoff": 6}, **axis},
    }  # fmt: skip
    return {"data": [*lines, *(_points(number, model, measured) for number, model in enumerate(models))],
            "layout": layout}  # fmt: skip


def _points(number: int, model: str, measured: Sequence[PredictionRow]) -> dict[str, Any]:
    rows = [row for row in measured if row.model == model]
    return {
        "type": "scatter", "mode": "markers", "name": html.escape(model, quote=False),
        "x": [row.predicted for row in rows], "y": [_gain(row) for row in rows],
        "marker": {"color": COLOURS[number % len(COLOURS)], "symbol": SYMBOLS[number // len(COLOURS) % len(SYMBOLS)],
                   "size": 8, "opacity": 0.75},
        "text": [_hover(row) for row in rows], "hovertemplate": "%{text}<extra></extra>",
    }  # fmt: skip


def _gain(row: PredictionRow) -> float | None:
    return row.measured.speedup if row.measured else None


def _hover(row: PredictionRow) -> str:
    name = html.escape(row.technique or "no technique named", quote=False)
    where = html.escape(f"{row.run_id}, kernel {row.number}", quote=False)
    gains = f"predicted {wording.speedup(row.predicted)}, measured {wording.speedup(_gain(row))}"
    return f"<b>{name}</b><br>{gains}<br>{where}"
