"""Pictures on the Trust tab: a kernel's errors as shares of their tolerances, and every timed call."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pages.parts import wording
from storage.index.queries import EvaluationRow, TimingSamples
from storage.results.check_records import CheckOutcome, CheckRecord, Group

ROW_PX = 24
FLOOR = 1e-3


@dataclass(frozen=True, slots=True)
class Measured:
    """One error and what it must not exceed, in one unit; `allowed` is above zero."""

    name: str
    error: float
    allowed: float
    is_wrong: bool

    @property
    def share(self) -> float:
        """The share of what is allowed; an error that is no number counts as one without bound."""
        return math.inf if math.isnan(self.error) else self.error / self.allowed


def measured(check_records: Sequence[CheckRecord], evaluation: EvaluationRow | None) -> list[Measured]:
    """The errors that a candidate's checks of correctness have in figures; else the one nearest its tolerance alone."""
    checks = [
        Measured(row.check, row.value, row.limit, row.standing is CheckOutcome.BROKEN)
        for row in check_records
        if row.group is Group.CORRECTNESS and row.value is not None and row.limit is not None and row.limit > 0
    ]
    if checks or evaluation is None or not evaluation.tolerance or evaluation.max_error is None:
        return checks
    is_wrong = not evaluation.max_error <= evaluation.tolerance
    return [Measured(wording.NEAREST, evaluation.max_error, evaluation.tolerance, is_wrong)]


def errors(checks: Sequence[Measured]) -> dict[str, Any]:
    """Every error as a share of what is allowed, on a log scale; a line where the two are equal."""
    low, high = _span([check.share for check in checks])
    limit = {"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1,
             "line": {"width": 1.6, "dash": "dash", "color": "@red-color"}}  # fmt: skip
    note = {"x": 0, "y": 1, "yref": "paper", "yanchor": "bottom", "text": "tolerance", "showarrow": False,
            "font": {"size": 11, "color": "@red-text-color"}}  # fmt: skip
    rows = {"tickvals": list(range(len(checks))), "ticktext": [wording.cut(check.name, 26) for check in checks],
            "range": [len(checks) - 0.5, -0.5], "automargin": True}  # fmt: skip
    axis = {"type": "log", "range": [math.log10(low / 1.5), math.log10(high)], **_ticks(low, high),
            "title": {"text": "error as a share of its tolerance", "font": {"size": 12}}}  # fmt: skip
    layout = _layout(axis, rows) | {"shapes": [limit], "annotations": [note], "uirevision": "errors"}
    layout["margin"] = {"l": 8, "r": 12, "t": 22, "b": 40}
    return {"data": [_dots(checks, low, high)], "layout": layout}


def _dots(checks: Sequence[Measured], low: float, high: float) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "markers+text", "x": [min(max(check.share, low), high) for check in checks],
        "y": list(range(len(checks))), "text": ["exact" if check.share == 0 else "" for check in checks],
        "textposition": "middle right", "textfont": {"size": 11, "color": "@gray-text-color"},
        "hovertext": [_hover(check) for check in checks], "hovertemplate": "%{hovertext}<extra></extra>",
        "cliponaxis": False,
        "marker": {"size": 9, "symbol": [_symbol(check) for check in checks],
                   "color": ["@red-color" if check.is_wrong else "@blue-color" for check in checks]},
    }  # fmt: skip


def errors_height(checks: Sequence[Measured]) -> int:
    """Pixels that so many rows need."""
    return 74 + ROW_PX * len(checks)


def strip(samples: TimingSamples) -> dict[str, Any]:
    """All samples of both sides as points over a box."""
    sides = (
        (samples.baseline or "baseline", samples.baseline_ms, "@gray-color"),
        ("kernel", samples.candidate_ms, "@blue-color"),
    )
    traces = [
        {"type": "box", "orientation": "h", "name": name, "x": values, "boxpoints": "all", "jitter": 0.6, "pointpos": 0,
         "marker": {"size": 4, "color": colour, "opacity": 0.7}, "line": {"width": 1.2, "color": colour},
         "fillcolor": "rgba(0,0,0,0)", "hovertemplate": "%{x:.4g} ms<extra></extra>"}
        for name, values, colour in sides
    ]  # fmt: skip
    axis = {"title": {"text": "latency, ms", "font": {"size": 12}}}
    return {"data": traces, "layout": _layout(axis, {}) | {"uirevision": "samples"}}


def _span(shares: Sequence[float]) -> tuple[float, float]:
    """From below the smallest share to beyond the line, and beyond the largest."""
    shown = [share for share in shares if 0 < share < math.inf]
    return min([FLOOR, *shown]) / 3, max([3.0, *shown]) * 1.5


def _ticks(low: float, high: float) -> dict[str, Any]:
    """Powers of ten, in percent up to the line and in multiples beyond it; at most about eight."""
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    every = max(1, math.ceil((last - first) / 7))
    powers = [k for k in range(first, last + 1) if k % every == 0]
    texts = [f"{wording.significant(10.0 ** (k + 2), 1)} %" if k <= 0 else f"{10**k:,}×" for k in powers]
    return {"tickvals": [10.0**k for k in powers], "ticktext": texts}


def _hover(check: Measured) -> str:
    return f"{html.escape(check.name, quote=False)}: {check.error:.3g}, {check.allowed:.3g} allowed"


def _symbol(check: Measured) -> str:
    if check.share == math.inf:
        return "x"
    return "triangle-left-open" if check.share == 0 else "diamond" if check.is_wrong else "circle"


def _layout(xaxis: dict[str, Any], yaxis: dict[str, Any]) -> dict[str, Any]:
    axis = {"gridcolor": "@border-color", "zeroline": False}
    return {
        "showlegend": False, "margin": {"l": 70, "r": 12, "t": 8, "b": 40}, "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)", "font": {"color": "@text-color", "size": 12},
        "xaxis": axis | xaxis, "yaxis": axis | yaxis,
    }  # fmt: skip
