"""Charts of a suite: arms against the baseline arm task by task, fast_p as a curve, and what is used after so much was
spent with its band over repeats."""

from __future__ import annotations

import math
from typing import Any

import streamlit as st

from engine.suites.formats import name, percent, times
from engine.suites.tables import comparison, comparisons, fast_table
from pages.parts import wording
from pages.parts.benchmark import text_tables
from pages.parts.compare.compare_chart import LEGEND_ROW_PX, chart_height, chart_layout
from pages.parts.compare.compared_runs import COLOURS, DASHES, SYMBOLS
from pages.parts.widgets import plot
from storage.suites.curves import BARS, CurvePoint, FastCurve, Spending, curve, fast_curve
from storage.suites.summary import Against, Paired, Results

ABOUT_CURVE = (
    "What one would run after so much was spent: the best kernel so far, or eager PyTorch (1×) while a task has "
    "nothing faster. Line: geometric mean over tasks and repeats; band: lowest to highest repeat."
)
LOWEST, HIGHEST = 0.05, 100.0


def draw_pairs(results: Results) -> None:
    """Each arm over the baseline arm, a dot a task; nothing where there is one arm or no task is solved by two."""
    pairs = [pair for pair in comparisons(results) if pair.ratios]
    if not pairs:
        return
    summary = "; ".join(comparison(pair) for pair in pairs)
    tasks = max(len(pair.ratios) for pair in pairs)
    over = _over(pairs)
    plot.draw(
        pairs_figure(pairs), f"Arms over {over}, task by task. {summary}",
        120 + 20 * tasks + LEGEND_ROW_PX * len(pairs), "pairs", key="pairs",
    )  # fmt: skip
    st.caption(
        f"A mark a task: the arm's best kernel over that of {wording.plain(over)}, averaged over repeats. "
        "Lines: median over tasks; band: its 95 % interval, from six tasks on."
    )


def _over(pairs: list[Paired]) -> str:
    """What the arms are compared with."""
    others = {pair.baseline for pair in pairs}
    return pairs[0].baseline if len(others) == 1 else "the arm it is compared with"


def pairs_figure(pairs: list[Paired]) -> dict[str, Any]:
    """Tasks down, ratios across on a logarithmic axis."""
    traces, shapes = [], []
    tasks = list(dict.fromkeys(task for pair in pairs for task, _ in pair.ratios))
    values = [ratio for pair in pairs for _, ratio in pair.ratios]
    for number, pair in enumerate(pairs, 1):
        colour, symbol = COLOURS[number % len(COLOURS)], SYMBOLS[number % len(SYMBOLS)]
        traces.append({
            "type": "scatter", "mode": "markers", "name": f"{pair.arm} over {pair.baseline}",
            "x": [ratio for _, ratio in pair.ratios], "y": [name(task) for task, _ in pair.ratios],
            "marker": {"symbol": symbol, "size": 9, "color": f"@{colour}-color"},
            "text": [
                f"<b>{wording.escaped(pair.arm)}</b> · {name(task)}<br>{times(ratio)}" for task, ratio in pair.ratios
            ],
            "hovertemplate": "%{text}<extra></extra>",
        })  # fmt: skip
        shapes += _median(pair, colour, DASHES[number % len(DASHES)])
    layout = chart_layout(f"best kernel over that of {_over(pairs)}", [1.0], False, "pairs", len(pairs))
    low, high = min([*values, 1.0]) / 1.15, max([*values, 1.0]) * 1.15
    ticks = plot.log_ticks(low, high)
    layout["xaxis"] |= {"type": "log", "tickvals": ticks, "ticktext": [f"{t:g}×" for t in ticks],
                        "range": [math.log10(low), math.log10(high)]}  # fmt: skip
    layout["yaxis"] = {"categoryorder": "array", "categoryarray": [name(task) for task in reversed(tasks)],
                       "automargin": True, "gridcolor": "@border-color"}  # fmt: skip
    one_line = {"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1, "layer": "below",
                "line": {"color": "@gray-color", "width": 1.2, "dash": "dot"}}  # fmt: skip
    layout |= {"shapes": [*shapes, one_line], "annotations": [], "showlegend": True}
    return {"data": traces, "layout": layout}


def _median(pair: Paired, colour: str, dash: str) -> list[dict[str, Any]]:
    if pair.ratio is None:
        return []
    across = {"yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    line = {"type": "line", "x0": pair.ratio.value, "x1": pair.ratio.value, **across,
            "line": {"color": f"@{colour}-color", "width": 2, "dash": dash}}  # fmt: skip
    if pair.ratio.low is None or pair.ratio.high is None:
        return [line]
    band = {"type": "rect", "x0": pair.ratio.low, "x1": pair.ratio.high, **across, "line": {"width": 0},
            "fillcolor": f"@{colour}-background-color/60"}  # fmt: skip
    return [band, line]


def draw_fast(results: Results, kernel_class: str) -> None:
    """fast_p at every speed-up, against what is chosen."""
    options = [choice for choice in Against if choice is not Against.ARM or len(results.arms) > 1]
    against = Against(
        st.segmented_control(
            "fast_p against", options, default=Against.EAGER, required=True, key="fast_against", bind="query-params"
        )
        or Against.EAGER
    )
    curves = [curve for arm in results.arms if (curve := fast_curve(results, arm, against, kernel_class))]
    if not curves:
        st.info("No run of this class has ended with such a baseline yet.", icon=":material/hourglass_empty:")
        return
    summary = "; ".join(
        f"{curve.arm} {percent(curve.at(1.0))} at 1×, {percent(curve.at(2.0))} at 2×" for curve in curves
    )
    plot.draw(
        fast_figure(curves, str(against)), f"fast_p over {against} at every speed-up. {summary}.",
        chart_height(len(curves)), f"fast:{against}", key="fast_curve",
    )  # fmt: skip
    text_tables.draw(fast_table(results, BARS, against), "fast_table")


def fast_figure(curves: list[FastCurve], against: str) -> dict[str, Any]:
    """Steps down from the share of correct kernels; the axis of speed-ups is logarithmic."""
    values = [speedup for fast in curves for speedup, _ in fast.steps] or [1.0]
    low, high = max(LOWEST, min(0.5, *values) / 1.2), min(HIGHEST, max(2.0, *values) * 1.2)
    traces = []
    for number, fast in enumerate(curves):
        steps = [
            (low, fast.at(low)),
            *((x, fast.at(x)) for x, _ in fast.steps if low < x < high),
            (high, fast.at(high)),
        ]
        traces.append({
            **_line(number, fast.arm), "x": [x for x, _ in steps], "y": [100 * y for _, y in steps],
            "text": [f"<b>{fast.arm}</b><br>{percent(y)} faster than {times(x)}" for x, y in steps],
            "hovertemplate": "%{text}<extra></extra>",
        })  # fmt: skip
    layout = chart_layout(f"p: speed-up over {against}", [1.0], False, f"fast:{against}", len(curves))
    ticks = plot.log_ticks(low, high)
    layout["xaxis"] |= {"type": "log", "tickvals": ticks, "ticktext": [f"{t:g}×" for t in ticks]}
    layout["yaxis"] |= {"range": [-3, 103], "ticksuffix": " %"}
    layout["yaxis"]["title"] = layout["yaxis"]["title"] | {"text": "runs that are faster than p"}
    layout["shapes"] = [{"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1, "layer": "below",
                         "line": {"color": "@gray-color", "width": 1.2, "dash": "dot"}}]  # fmt: skip
    layout["annotations"] = []
    return {"data": traces, "layout": layout}


def draw_curve(results: Results, kernel_class: str) -> None:
    """What is used after so much was spent, an arm a line."""
    axis = Spending(
        st.segmented_control(
            "Over", list(Spending), default=Spending.CALLS, required=True, key="spending", bind="query-params"
        )
        or Spending.CALLS
    )
    curves = {arm: points for arm in results.arms if (points := curve(results, arm, kernel_class, axis))}
    if not curves:
        st.info("No run of this class has ended with this known yet.", icon=":material/hourglass_empty:")
        return
    summary = "; ".join(
        f"{arm} {times(points[-1].mean)} after {points[-1].spent:.4g}" for arm, points in curves.items()
    )
    plot.draw(
        curve_figure(curves, axis), f"Speed-up used where faster, over {axis}. {summary}.", chart_height(len(curves)),
        f"spending:{axis}", key="spending_curve",
    )  # fmt: skip
    st.caption(ABOUT_CURVE)


def curve_figure(curves: dict[str, list[CurvePoint]], axis: Spending) -> dict[str, Any]:
    """A line and a band an arm."""
    traces: list[dict[str, Any]] = []
    lines = []
    for number, (arm, points) in enumerate(curves.items()):
        spent = [point.spent for point in points]
        colour = COLOURS[number % len(COLOURS)]
        edge = {"type": "scatter", "mode": "lines", "x": spent, "hoverinfo": "skip", "showlegend": False,
                "legendgroup": arm, "line": {"width": 0, "shape": "hv", "color": f"@{colour}-color"}}  # fmt: skip
        if any(point.high > point.low for point in points):
            traces.append(edge | {"y": [point.low for point in points], "name": f"lowest, {arm}"})
            traces.append(edge | {"y": [point.high for point in points], "name": f"highest, {arm}",
                                  "fill": "tonexty", "fillcolor": f"@{colour}-background-color/60"})  # fmt: skip
        lines.append({
            **_line(number, arm), "x": spent, "y": [point.mean for point in points],
            "text": [_hover(arm, point, axis) for point in points], "hovertemplate": "%{text}<extra></extra>",
        })  # fmt: skip
    values = [value for points in curves.values() for point in points for value in (point.low, point.high)]
    layout = chart_layout(str(axis), values, True, f"{axis}", len(curves))
    layout["yaxis"]["title"] = layout["yaxis"]["title"] | {"text": "speed-up over eager, used where faster"}
    return {"data": traces + lines, "layout": layout}  # no band may lie over a line


def _hover(arm: str, point: CurvePoint, axis: Spending) -> str:
    band = f"<br>repeats {times(point.low)} to {times(point.high)}" if point.high > point.low else ""
    return f"<b>{arm}</b> · {point.spent:.4g} {axis}<br>{times(point.mean)}{band}"


def _line(number: int, arm: str) -> dict[str, Any]:
    """An arm's line; its dash tells it apart as well as its colour."""
    return {
        "type": "scatter", "mode": "lines", "name": arm, "legendgroup": arm,
        "line": {"shape": "hv", "width": 2.4, "color": f"@{COLOURS[number % len(COLOURS)]}-color",
                 "dash": DASHES[number % len(DASHES)]},
    }  # fmt: skip
