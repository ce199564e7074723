"""What each model predicted that its changes would gain, against what they gained: a table and a picture."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages.parts import index, wording
from pages.parts.models import by_model
from pages.parts.widgets import diagonal, plot, table
from pages.parts.widgets.diagonal import Group, Point
from storage.index import queries
from storage.index.queries import CalibrationRow, PredictionRow

COLUMNS = [
    table.Column("model", "Model", "nowrap", by_model.NAMED),
    table.Column("predictions", "Predictions", "right", "changes whose gain over the base kernel was predicted"),
    table.Column("measured", "Measured", "right", "of these, led to a correct kernel that was timed"),
    table.Column("promised", "Median predicted", "right", "gain over the base kernel, of the measured ones"),
    table.Column("gained", "Median measured", "right", "gain over the base kernel"),
    table.Column(
        "ratio", "Measured / predicted", "right", "median of the ratios; below 1 the model promises more than it gains"
    ),
]
COLOURS = ("@blue-color", "@orange-color", "@violet-color", "@green-color", "@red-color", "@gray-color")
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "pentagon")


def draw() -> None:
    """A row per model, and a point per prediction that was measured."""
    models, measured = queries.calibration(index.current()), queries.measured_predictions(index.current())
    st.markdown("## Predicted and measured gain")
    if not models:
        st.caption("No gain predicted yet: a model is asked for one with each optimisation.")
        return
    rows = [table.Row(row.model, cells(row)) for row in models]
    table.draw("Predicted and measured gain by model", COLUMNS, rows, key="calibration", is_cards=True)
    if measured:
        words = f"Measured against predicted gain of {wording.counted(len(measured), 'kernel')}, a point each"
        plot.draw(figure(measured), words, diagonal.HEIGHT, "calibration", key="calibration_points")
    st.caption(
        "All runs. Gain: latency of the base kernel over that of the new one, or of its repair where it was mended "
        "first. On the dashed line a change gained what was predicted; below the dotted line it made the kernel slower."
    )


def cells(row: CalibrationRow) -> dict[str, table.Cell]:
    """One model as cells."""
    return {
        "model": table.text(row.model, "strong"),
        "predictions": wording.count(row.predictions),
        "measured": by_model.part(row.measured, row.predictions),
        "promised": wording.speedup(row.median_predicted),
        "gained": wording.speedup(row.median_measured),
        "ratio": wording.NONE if row.median_ratio is None else wording.significant(row.median_ratio),
    }


def figure(measured: Sequence[PredictionRow]) -> dict[str, Any]:
    """A point for each prediction whose kernel was measured, by model."""
    models = list(dict.fromkeys(row.model for row in measured))
    groups = [_group(number, model, measured) for number, model in enumerate(models)]
    return diagonal.figure(groups, "the base kernel", "calibration")


def _group(number: int, model: str, measured: Sequence[PredictionRow]) -> Group:
    of_model = ((row, row.predicted, _gain(row)) for row in measured if row.model == model)
    points = [Point(predicted, gain, _hover(row)) for row, predicted, gain in of_model if predicted and gain]
    symbol = SYMBOLS[number // len(COLOURS) % len(SYMBOLS)]
    return Group(model, COLOURS[number % len(COLOURS)], symbol, points)


def _gain(row: PredictionRow) -> float | None:
    return row.measured.speedup if row.measured else None


def _hover(row: PredictionRow) -> str:
    name = html.escape(row.technique or "no technique named", quote=False)
    where = html.escape(f"{row.run_id}, kernel {row.number}", quote=False)
    gains = f"predicted {wording.speedup(row.predicted)}, measured {wording.speedup(_gain(row))}"
    return f"<b>{name}</b><br>{gains}<br>{where}"
