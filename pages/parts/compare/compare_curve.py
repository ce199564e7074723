"""Several runs on one chart: the best speed-up so far over depth, calls, time, tokens or money. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pages.parts import wording
from pages.parts.compare.compared_runs import AXIS_TITLE, Axis, Compared, position
from pages.parts.widgets import plot
from storage.queries import ReachedRow, TimedRow

Trace = dict[str, Any]
Figure = dict[str, Any]
LEGEND_ROW_PX = 22
POINTS = 600


def figure(runs: Sequence[Compared], axis: Axis, is_log: bool, has_kernels: bool) -> Figure:
    """The whole figure; colours are names that the browser resolves."""
    traces = [trace for run in runs for trace in _traces(run, axis, has_kernels)]
    values = [value for trace in traces for value in trace["y"] if value]
    return {"data": traces, "layout": layout(AXIS_TITLE[axis], values, is_log, f"{axis}", len(runs))}


def unknown(runs: Sequence[Compared], axis: Axis) -> list[Compared]:
    """Runs that have a kernel which cannot be placed on this axis, for want of counts or prices."""
    return [run for run in runs if any(row.best_speedup and position(row, axis) is None for row in run.reached)]


def _traces(run: Compared, axis: Axis, has_kernels: bool) -> list[Trace]:
    """The line of the best so far with the run's letter at its end; and its kernels when asked for."""
    rows = telling(run.reached)
    steps = [(x, r.best_speedup, r) for r in rows if r.best_speedup and (x := position(r, axis)) is not None]
    line = {
        "type": "scatter", "mode": "lines+markers", "name": wording.cut(run.name, 70), "legendgroup": run.letter,
        "x": [x for x, _, _ in steps], "y": [best for _, best, _ in steps],
        "line": {"shape": "hv", "width": 2.4, "color": run.colour, "dash": run.dash},
        "marker": {"symbol": run.symbol, "size": [9 if r.speedup == best else 1 for _, best, r in steps],
                   "color": run.colour, "opacity": 1},
        "customdata": [f"{r.run_id}#{r.candidate_id}" if r.candidate_id else "" for _, _, r in steps],
        "text": [_hover(run, r) for _, _, r in steps], "hovertemplate": "%{text}<extra></extra>",
    }  # fmt: skip
    return [line, _end(run, steps), *([_kernels(run, axis)] if has_kernels else [])]


def telling(rows: Sequence[ReachedRow]) -> list[ReachedRow]:
    """Of a very long run only where the best so far rose, and the end: between them nothing is to be seen."""
    if len(rows) <= POINTS:
        return list(rows)
    bests = [row.best_speedup for row in rows]
    return [row for at, row in enumerate(rows) if at == len(rows) - 1 or not at or bests[at] != bests[at - 1]]


def _end(run: Compared, steps: Sequence[tuple[float, float, ReachedRow]]) -> Trace:
    """The letter beside the end of the line, so that no colour has to be told apart."""
    last = steps[-1:]
    return {
        "type": "scatter", "mode": "text", "hoverinfo": "skip", "showlegend": False, "cliponaxis": False,
        "legendgroup": run.letter, "name": f"end of {run.letter}",
        "x": [x for x, _, _ in last], "y": [best for _, best, _ in last],
        "text": [f"<b>{run.letter}</b>" for _ in last], "textposition": "middle right",
        "textfont": {"size": 13, "color": run.colour.replace("-color", "-text-color")},
    }  # fmt: skip


def _kernels(run: Compared, axis: Axis) -> Trace:
    found = [(x, row) for row in run.timed if (x := position(row, axis)) is not None]
    trace_type = "scattergl" if len(found) > POINTS else "scatter"
    return {
        "type": trace_type, "mode": "markers", "name": f"kernels of {run.letter}", "legendgroup": run.letter,
        "showlegend": False, "x": [x for x, _ in found], "y": [row.speedup for _, row in found],
        "marker": {"symbol": f"{run.symbol}-open", "size": 8, "color": run.colour, "line": {"width": 1.4}},
        "customdata": [f"{row.run_id}#{row.candidate_id}" for _, row in found],
        "text": [_hover_kernel(run, row) for _, row in found],
        "hovertemplate": "%{text}<extra></extra>",
    }  # fmt: skip


def _hover_kernel(run: Compared, row: TimedRow) -> str:
    measured = f"{wording.speedup(row.speedup, row.noise)} {wording.plus_minus(row.noise)}"
    head = f"<b>{run.letter}</b> · kernel {row.number} · depth {row.depth} · {measured}"
    return f"{head}<br>{wording.escaped(row.summary)}"


def _hover(run: Compared, row: ReachedRow) -> str:
    tokens, cost = wording.tokens(row.tokens), wording.cost(row.cost_usd)
    spent = f"{wording.seconds(row.engine_s)} at work, {tokens} tokens, {cost}"
    seen = " · profile shown" if row.is_profile_exposed else ""
    return (
        f"<b>{run.letter}</b> · {wording.escaped(run.run.title)} · depth {row.depth}{seen}<br>"
        f"best so far {wording.speedup(row.best_speedup)} · {spent}"
    )


def layout(x_title: str, values: Sequence[float], is_log: bool, revision: str, rows: int) -> dict[str, Any]:
    """Axes and legend; the legend stands below, where it covers nothing."""
    small, grid = {"size": 12}, {"gridcolor": "@border-color", "zeroline": False, "linecolor": "@border-color"}
    top, low = max([1.0, *values]), min([1.0, *values])
    speed: dict[str, Any] = {"title": {"text": "best speed-up so far, over eager baseline", "font": small}, **grid}
    ticks = plot.FINE if top / low < 4 else plot.COARSE
    if is_log:
        speed |= {"type": "log", "tickvals": ticks, "ticktext": [f"{t:g}×" for t in ticks]}
    else:
        speed |= {"ticksuffix": "×"}
    return {
        "uirevision": f"{revision}{is_log}", "hovermode": "closest", "dragmode": "zoom", "clickmode": "event",
        "margin": {"l": 62, "r": 26, "t": 30, "b": 60 + LEGEND_ROW_PX * rows},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "@gray-color", "activecolor": "@primary-color"},
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": "@text-color", "size": 12},
        "xaxis": {"title": {"text": x_title, "font": small, "standoff": 8}, **grid},
        "yaxis": speed,
        "legend": {"orientation": "v", "x": 0, "xanchor": "left", "yref": "container", "y": 0, "yanchor": "bottom",
                   "font": {"size": 11}},
        "hoverlabel": {"align": "left", "bgcolor": "@secondary-background-color", "bordercolor": "@border-color",
                       "font": {"color": "@text-color", "size": 12}},
        "shapes": [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": 1, "y1": 1,
                    "layer": "below", "line": {"color": "@gray-color", "width": 1.2, "dash": "dot"}}],
        "annotations": [{"xref": "paper", "x": 1, "yref": "y", "y": 0 if is_log else 1, "text": "eager 1×",
                         "showarrow": False, "xanchor": "right", "yanchor": "bottom",
                         "font": {"size": 10, "color": "@gray-text-color"}}],
    }  # fmt: skip


def height(rows: int) -> int:
    """Pixels: the legend grows below the curves, not into them."""
    return 400 + LEGEND_ROW_PX * rows
