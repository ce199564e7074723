"""The speed-up curve as a Plotly figure: pure, from rows of the index. Colours are names that the browser resolves."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pages.parts import marks, wording
from storage.queries import AttemptRow, BaselineRow, DepthRow, SteeringMark, StepRow
from storage.records import Verdict

Trace = dict[str, Any]
COARSE = [2.0**k for k in range(-10, 15)]
FINE = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0]


@dataclass(frozen=True, slots=True)
class CurveRows:
    """Everything the curve shows. `limit_speedup` is baseline latency over the hardware's limit, `second` the further
    baseline, None before it was measured."""

    attempts: Sequence[AttemptRow]
    depths: Sequence[DepthRow]
    steering: Sequence[SteeringMark]
    unapplied: Sequence[StepRow]
    budget_depths: int
    limit_speedup: float | None
    target_speedup: float | None
    selected_id: str
    second: BaselineRow | None = None


def figure(rows: CurveRows, is_log: bool, revision: str) -> dict[str, Any]:
    """The whole figure; `revision` names the run, so that zoom is kept while it stays the same."""
    x_of = positions(rows.attempts)
    timed = [a for a in rows.attempts if a.speedup is not None]
    traces = [
        *_branches(timed, x_of),
        _best_so_far(rows.depths),
        _points("kept", [a for a in timed if a.is_accepted], x_of, "circle", "@blue-color"),
        _points("correct, not kept", [a for a in timed if not a.is_accepted], x_of, "circle-open", "@blue-color"),
        _points("best", [a for a in timed if a.is_best], x_of, "star", "@green-color", size=17),
        _best_label([a for a in timed if a.is_best], x_of),
        _selection(timed, x_of, rows.selected_id),
        *_failures(rows, x_of),
        *_spacers([a.speedup for a in timed if a.speedup]),
    ]
    layout = _layout(rows, is_log, revision, [a.speedup for a in timed if a.speedup])
    return {"data": [trace for trace in traces if trace["x"]], "layout": layout}


def positions(attempts: Sequence[AttemptRow]) -> dict[str, float]:
    """Where each attempt stands: the last one of a depth at the depth itself, earlier ones to its left, in order."""
    by_depth: dict[int, list[str]] = {}
    for attempt in attempts:
        by_depth.setdefault(attempt.depth, []).append(attempt.candidate_id)
    return {
        name: depth - 0.62 * (len(names) - 1 - i) / max(len(names) - 1, 3)
        for depth, names in by_depth.items()
        for i, name in enumerate(names)
    }


def _hover(attempt: AttemptRow) -> str:
    verdict = wording.VERDICT_NAME[attempt.verdict] if attempt.verdict else "not judged yet"
    measured = f"{wording.speedup(attempt.speedup, attempt.noise)} {wording.plus_minus(attempt.noise)}"
    outcome = measured if attempt.speedup is not None else (attempt.message or verdict)
    head = f"<b>kernel {attempt.number}</b> · depth {attempt.depth} · {_cut(outcome, 90)}"
    kept = "best so far" if attempt.is_best else "kept" if attempt.is_accepted else verdict
    return f"{head} · {kept}<br>{_cut(attempt.summary, 110)}"


def _cut(text: str, length: int) -> str:
    flat = " ".join(text.split())
    return html.escape(flat if len(flat) <= length else flat[: length - 1] + "…", quote=False)


def _points(
    name: str, found: Sequence[AttemptRow], x_of: dict[str, float], symbol: str, colour: str, size: int = 10
) -> Trace:
    return {
        "type": "scatter", "mode": "markers", "name": name,
        "x": [x_of[a.candidate_id] for a in found], "y": [a.speedup for a in found],
        "customdata": [a.candidate_id for a in found], "text": [_hover(a) for a in found],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {"symbol": symbol, "size": size, "color": colour, "line": {"width": 1.6, "color": colour}},
        "error_y": {
            "type": "data", "symmetric": False, "thickness": 1.2, "width": 3, "color": colour, "visible": size < 15,
            "array": [(a.high or 0) - (a.speedup or 0) for a in found],
            "arrayminus": [(a.speedup or 0) - (a.low or 0) for a in found],
        },
    }  # fmt: skip


def _branches(timed: Sequence[AttemptRow], x_of: dict[str, float]) -> list[Trace]:
    """Lines from each base kernel to what was made of it: a return to an older kernel shows as a fork."""
    spot = {a.candidate_id: (x_of[a.candidate_id], a.speedup) for a in timed}
    drawn = []
    for is_kept, dash, name in ((True, "solid", "made from"), (False, "dot", "tried from")):
        xs: list[float | None] = []
        ys: list[float | None] = []
        for a in timed:
            if a.is_accepted is is_kept and a.base_id in spot and a.base_id != a.candidate_id:
                (x0, y0), (x1, y1) = spot[a.base_id], spot[a.candidate_id]
                xs += [x0, x1, None]
                ys += [y0, y1, None]
        line = {"width": 1.3, "color": "@gray-color", "dash": dash}
        drawn.append({"type": "scatter", "mode": "lines", "name": name, "x": xs, "y": ys, "line": line,
                      "hoverinfo": "skip", "showlegend": False})  # fmt: skip
    return drawn


def _best_so_far(depths: Sequence[DepthRow]) -> Trace:
    found = [(d.depth, d.best_speedup) for d in depths if d.best_speedup is not None and d.outcome is not None]
    return {
        "type": "scatter", "mode": "lines", "name": "best so far", "hoverinfo": "skip",
        "x": [depth for depth, _ in found], "y": [best for _, best in found],
        "line": {"shape": "hv", "width": 3, "color": "@green-color/55"},
    }  # fmt: skip


def _best_label(best: Sequence[AttemptRow], x_of: dict[str, float]) -> Trace:
    """The number that everybody looks for, beside its point."""
    return {
        "type": "scatter", "mode": "text", "hoverinfo": "skip", "showlegend": False, "cliponaxis": False,
        "x": [x_of[a.candidate_id] for a in best], "y": [a.speedup for a in best],
        "text": [f"<b>{wording.speedup(a.speedup, a.noise)}</b><br> " for a in best],
        "textposition": "top center",
        "textfont": {"size": 14, "color": "@green-text-color"},
    }  # fmt: skip


def _spacers(values: list[float]) -> list[Trace]:
    """Nothing to see: room above and below the points, and the failure lane even while nothing has failed."""
    unseen = {"type": "scatter", "mode": "markers", "opacity": 0, "hoverinfo": "skip", "showlegend": False, "x": [0, 0]}
    edges = [min([1.0, *values]) / marks.ROOM_BELOW, max([1.0, *values]) * marks.ROOM_ABOVE]
    return [unseen | {"y": edges}, unseen | {"y": [0, 0], "yaxis": "y2"}]


def _selection(timed: Sequence[AttemptRow], x_of: dict[str, float], selected_id: str) -> Trace:
    chosen = [a for a in timed if a.candidate_id == selected_id]
    return {
        "type": "scatter", "mode": "markers", "name": "looked at last", "hoverinfo": "skip", "showlegend": False,
        "x": [x_of[a.candidate_id] for a in chosen], "y": [a.speedup for a in chosen],
        "marker": {"symbol": "circle-open", "size": 21, "line": {"width": 2, "color": "@primary-color"}},
    }  # fmt: skip


_FAILURE_MARKS = {
    Verdict.COMPILE_ERROR: ("x", "@orange-color"),
    Verdict.INCORRECT: ("diamond", "@red-color"),
    Verdict.RUNTIME_ERROR: ("triangle-up", "@red-color"),
    Verdict.TIMEOUT: ("hourglass", "@violet-color"),
    Verdict.OUT_OF_MEMORY: ("square", "@violet-color"),
    Verdict.REFUSED: ("octagon", "@violet-color"),
}


def _failures(rows: CurveRows, x_of: dict[str, float]) -> list[Trace]:
    """Marks in the lane at the foot, by kind; an edit that could not be applied made no kernel and opens none."""
    lane = {"type": "scatter", "mode": "markers", "yaxis": "y2", "hovertemplate": "%{text}<extra></extra>"}
    drawn = []
    for verdict, (symbol, colour) in _FAILURE_MARKS.items():
        found = [a for a in rows.attempts if a.verdict is verdict]
        drawn.append(lane | {
            "name": wording.VERDICT_NAME[verdict], "x": [x_of[a.candidate_id] for a in found], "y": [0.0] * len(found),
            "customdata": [a.candidate_id for a in found], "text": [_hover(a) for a in found],
            "marker": {"symbol": symbol, "size": 10, "color": colour},
        })  # fmt: skip
    steps = rows.unapplied
    drawn.append(lane | {
        "name": "edit not applied", "x": [s.depth - 0.35 for s in steps], "y": [0.0] * len(steps),
        "text": [f"depth {s.depth} · {_cut(s.text, 110)}" for s in steps],
        "marker": {"symbol": "line-ns-open", "size": 12, "color": "@gray-color", "line": {"width": 2}},
    })  # fmt: skip
    return drawn


def tick_step(last: int) -> int:
    """Depths between two labels, so that about twenty fit: 1, 2 or 5 times a power of ten."""
    power = 1
    while last >= 25 * power * 10:
        power *= 10
    return next((step * power for step in (1, 2, 5) if last < 25 * step * power), 10 * power)


def _layout(rows: CurveRows, is_log: bool, revision: str, values: list[float]) -> dict[str, Any]:
    last = max([rows.budget_depths, *(a.depth for a in rows.attempts)])
    shapes, notes = marks.reference_lines(rows.limit_speedup, rows.target_speedup, values, is_log, rows.second)
    bands = marks.exposure_bands([d.depth for d in rows.depths if d.is_profile_exposed])
    flags, flag_notes = marks.steering_flags(rows.steering)
    grid = {"gridcolor": "@border-color", "zeroline": False, "linecolor": "@border-color"}
    small = {"size": 12}
    speed: dict[str, Any] = {"title": {"text": "speed-up over eager baseline", "font": small}, "domain": [0.17, 1.0]}
    ticks = FINE if max([1.0, *values]) / min([1.0, *values]) < 4 else COARSE
    speed |= {"uirevision": f"{revision}{is_log}", **grid}
    speed |= (
        {"type": "log", "tickvals": ticks, "ticktext": [f"{t:g}×" for t in ticks]} if is_log else {"ticksuffix": "×"}
    )
    return {
        "uirevision": revision, "hovermode": "closest", "dragmode": "zoom", "clickmode": "event",
        "margin": {"l": 62, "r": 16, "t": 54, "b": 44},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "@gray-color", "activecolor": "@primary-color"},
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": "@text-color", "size": 12},
        "xaxis": {"title": {"text": "depth (completed optimisation steps)", "font": small}, "anchor": "y2",
                  "dtick": tick_step(last), "range": [-0.75, last + 0.5], **grid},
        "yaxis": speed,
        "yaxis2": {"title": {"text": "failed", "font": small}, "domain": [0.0, 0.12], "range": [-1, 1],
                   "showticklabels": False, "fixedrange": True, "zeroline": False, "showgrid": False},
        "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "font": {"size": 11}, "itemwidth": 30,
                   "itemsizing": "constant"},
        "hoverlabel": {"align": "left", "bgcolor": "@secondary-background-color", "bordercolor": "@border-color",
                       "font": {"color": "@text-color", "size": 12}},
        "shapes": [*bands, *shapes, *flags, marks.LANE],
        "annotations": [*(marks.in_log_units(notes) if is_log else notes), *flag_notes],
    }  # fmt: skip
