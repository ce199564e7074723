"""The speed-up curve as a Plotly figure: pure, from rows of the index. Colours are names that the browser resolves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pages.parts.run import marks, traces
from pages.parts.run.phases import Phase
from storage.queries import BaselineRow, BeamRow, FailureRow, PointRow, RiseRow, SteeringMark, UnappliedRow

COARSE = [2.0**k for k in range(-10, 15)]
FINE = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0]
NAME_WIDTH = 0.3  # of the chart's: what a line's name takes up of a narrow one
MANY = 300  # points beyond which their noise is left to the hover
GRID = {"gridcolor": "@border-color", "zeroline": False, "linecolor": "@border-color"}


@dataclass(frozen=True, slots=True)
class CurveRows:
    """Everything the curve shows. `limit_speedup` is baseline latency over the hardware's limit, `second` the further
    baseline, None before it was measured. `kernels` counts all, also those that a long run's curve leaves out."""

    points: Sequence[PointRow]
    failures: Sequence[FailureRow]
    unapplied: Sequence[UnappliedRow]
    beam: Sequence[BeamRow]
    rises: Sequence[RiseRow]
    phases: Sequence[Phase]
    steering: Sequence[SteeringMark]
    kernels: int
    budget_depths: int
    limit_speedup: float | None
    target_speedup: float | None
    selected_id: str = ""
    second: BaselineRow | None = None


def figure(rows: CurveRows, is_log: bool, revision: str) -> dict[str, Any]:
    """The whole figure; `revision` names the run, so that zoom is kept while it stays the same."""
    best = [p for p in rows.points if p.is_best]
    values = [p.speedup for p in rows.points if p.speedup]
    size = 10 if len(rows.points) <= MANY else 6
    drawn = [
        traces.band(rows.beam),
        *traces.branches(rows.points),
        traces.best_so_far(rows.rises),
        *(_without_noise(rows, traces.kernels(name, found, symbol, colour, size))
          for name, found, symbol, colour in _by_outcome(rows.points)),
        traces.kernels("tied with the best", [p for p in rows.points if p.is_tied], "star-open", "@green-color", 15),
        traces.kernels("best", best, "star", "@green-color", size=17),
        *traces.selection(rows.points, rows.failures, rows.selected_id),
        *traces.failures(rows.failures, rows.unapplied),
        *traces.spacers(values),
    ]  # fmt: skip
    return {"data": [trace for trace in drawn if trace["x"]], "layout": _layout(rows, is_log, revision, values)}


def _by_outcome(points: Sequence[PointRow]) -> Iterator[tuple[str, list[PointRow], str, str]]:
    pending = [p for p in points if p.is_pending and not p.is_accepted]
    yield "accepted", [p for p in points if p.is_accepted], "circle", "@blue-color"
    yield "correct, pending", pending, "circle-open-dot", "@blue-color"
    yield "abandoned", [p for p in points if not p.is_accepted and not p.is_pending], "circle-open", "@blue-color"


def _without_noise(rows: CurveRows, trace: traces.Trace) -> traces.Trace:
    return trace if len(rows.points) <= MANY else {k: v for k, v in trace.items() if k != "error_y"}


def last_depth(rows: CurveRows) -> int:
    """The last depth on the axis: what is allowed, or what was reached beyond it."""
    reached = [p.depth for p in rows.points] + [f.depth for f in rows.failures]
    return max([rows.budget_depths, *reached])


def tick_step(last: int) -> int:
    """Depths between two labels, so that about twenty fit: 1, 2 or 5 times a power of ten."""
    power = 1
    while last >= 25 * power * 10:
        power *= 10
    return next((step * power for step in (1, 2, 5) if last < 25 * step * power), 10 * power)


def _layout(rows: CurveRows, is_log: bool, revision: str, values: list[float]) -> dict[str, Any]:
    last = last_depth(rows)
    axis = [-0.75, last + 0.5]
    width = NAME_WIDTH * (axis[1] - axis[0])
    ends = (
        [p.speedup for p in rows.points if p.speedup and p.x < axis[0] + width],
        [p.speedup for p in rows.points if p.speedup and p.x > axis[1] - width],
    )
    shapes, notes = marks.reference_lines(rows.limit_speedup, rows.target_speedup, values, is_log, rows.second, ends)
    notes = [*notes, *marks.best_labels(p for p in rows.points if p.is_best)]
    flags, flag_notes = marks.steering_flags(rows.steering)
    small = {"size": 12}
    return {
        "uirevision": revision, "hovermode": "closest", "dragmode": "zoom", "clickmode": "event",
        "margin": {"l": 58, "r": 14, "t": 34, "b": 40},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "@gray-color", "activecolor": "@primary-color"},
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": "@text-color", "size": 12},
        "xaxis": {"title": {"text": "depth (completed optimisation steps)", "font": small, "standoff": 6},
                  "anchor": "y2", "dtick": tick_step(last), "range": axis, **GRID},
        "yaxis": _speed_axis(is_log, revision, values),
        "yaxis2": {"title": {"text": "failed", "font": small}, "domain": [0.0, marks.LANE_TOP], "range": [-1, 1],
                   "showticklabels": False, "fixedrange": True, "zeroline": False, "showgrid": False},
        "legend": {"orientation": "h", "y": 1.01, "yanchor": "bottom", "x": 0, "font": {"size": 11}, "itemwidth": 30,
                   "itemsizing": "constant"},
        "hoverlabel": {"align": "left", "bgcolor": "@secondary-background-color", "bordercolor": "@border-color",
                       "font": {"color": "@text-color", "size": 12}, "namelength": -1},
        "shapes": [*marks.phase_bands(rows.phases), *shapes, *flags, marks.LANE],
        "annotations": [*(marks.in_log_units(notes) if is_log else notes), *flag_notes],
    }  # fmt: skip


def _speed_axis(is_log: bool, revision: str, values: list[float]) -> dict[str, Any]:
    ticks = FINE if max([1.0, *values]) / min([1.0, *values]) < 4 else COARSE
    scale = (
        {"type": "log", "tickvals": ticks, "ticktext": [f"{t:g}×" for t in ticks]} if is_log else {"ticksuffix": "×"}
    )
    return {
        "title": {"text": "speed-up over eager baseline", "font": {"size": 12}},
        "domain": [marks.LANE_TOP + 0.04, marks.RIBBON - 0.01], "uirevision": f"{revision}{is_log}", **GRID, **scale,
    }  # fmt: skip
