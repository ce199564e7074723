"""The points, lines and bands of the speed-up curve as Plotly traces: pure, from rows of the index."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from pages.parts import wording
from pages.parts.run import marks
from storage.queries import BeamRow, FailureRow, PointRow, RiseRow, UnappliedRow
from storage.records import Verdict

Trace = dict[str, Any]
UNHOVERED = {"hoverinfo": "skip", "showlegend": False}
FAILURE_MARKS = {
    Verdict.COMPILE_ERROR: ("x", "@orange-color"),
    Verdict.INCORRECT: ("diamond", "@red-color"),
    Verdict.RUNTIME_ERROR: ("triangle-up", "@red-color"),
    Verdict.TIMEOUT: ("hourglass", "@violet-color"),
    Verdict.OUT_OF_MEMORY: ("square", "@violet-color"),
    Verdict.REFUSED: ("octagon", "@violet-color"),
}


def kernels(name: str, found: Sequence[PointRow], symbol: str, colour: str, size: int = 10) -> Trace:
    """Correct kernels with the noise of their measurement."""
    return {
        "type": "scatter", "mode": "markers", "name": name,
        "x": [p.x for p in found], "y": [p.speedup for p in found],
        "customdata": [p.candidate_id for p in found], "text": [hover(p) for p in found],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {"symbol": symbol, "size": size, "color": colour, "line": {"width": 1.6, "color": colour}},
        "error_y": {
            "type": "data", "symmetric": False, "thickness": 1.2, "width": 3, "color": colour, "visible": size < 15,
            "array": [(p.high or 0) - (p.speedup or 0) for p in found],
            "arrayminus": [(p.speedup or 0) - (p.low or 0) for p in found],
        },
    }  # fmt: skip


def hover(p: PointRow) -> str:
    """The optimisation in one line."""
    rank = " · best" if p.is_best else " · tied with the best" if p.is_tied else ""
    measured = f"{wording.speedup(p.speedup, p.noise)} {wording.plus_minus(p.noise)}"
    what = short(p.summary, 84) or wording.ORIGIN_NAME[p.origin]
    outcome = wording.outcome(p.verdict, p.is_accepted, p.is_pending)
    return f"<b>{what}</b> · {measured} · kernel {p.number} · {outcome}{rank}"


def short(text: str, length: int) -> str:
    """One line in which nothing acts as markup."""
    return html.escape(wording.cut(text, length), quote=False)


def band(found: Sequence[BeamRow]) -> Trace:
    """Between the slowest and the fastest correct kernel of each depth; nothing where no depth has two."""
    rows = found if any(row.count > 1 for row in found) else []
    return UNHOVERED | {
        "type": "scatter", "mode": "lines", "name": "slowest to fastest of a depth", "showlegend": True,
        "x": [r.depth for r in rows] + [r.depth for r in reversed(rows)],
        "y": [r.high for r in rows] + [r.low for r in reversed(rows)],
        "fill": "toself", "fillcolor": "@blue-color/14", "line": {"width": 0.6, "color": "@blue-color/35"},
    }  # fmt: skip


def branches(found: Sequence[PointRow]) -> list[Trace]:
    """Lines from each base kernel to what was made of it: a return to an older kernel shows as a fork."""
    spot = {p.candidate_id: p for p in found}
    drawn = []
    for is_accepted, dash, name in ((True, "solid", "made from"), (False, "dot", "tried from")):
        xs: list[float | None] = []
        ys: list[float | None] = []
        for p in found:
            base = spot.get(p.base_id or "")
            if p.is_accepted is is_accepted and base and base is not p:
                xs += [base.x, p.x, None]
                ys += [base.speedup, p.speedup, None]
        line = {"width": 1.3, "color": "@gray-color", "dash": dash}
        drawn.append(UNHOVERED | {"type": "scatter", "mode": "lines", "name": name, "x": xs, "y": ys, "line": line})
    return drawn


def best_so_far(rises: Sequence[RiseRow]) -> Trace:
    """The staircase of the best kernel."""
    return {
        "type": "scatter", "mode": "lines", "name": "best so far", "hoverinfo": "skip",
        "x": [row.x for row in rises], "y": [row.speedup for row in rises],
        "line": {"shape": "hv", "width": 3, "color": "@green-color/55"},
    }  # fmt: skip


def selection(points: Sequence[PointRow], failures: Sequence[FailureRow], selected_id: str) -> list[Trace]:
    """A ring around the kernel that is open or was looked at last."""
    ring = UNHOVERED | {
        "type": "scatter", "mode": "markers", "name": "selected",
        "marker": {"symbol": "circle-open", "size": 22, "color": "@primary-color", "line": {"width": 2.4}},
    }  # fmt: skip
    chosen = [p for p in points if p.candidate_id == selected_id]
    failed = [f for f in failures if f.candidate_id == selected_id]
    return [
        ring | {"x": [p.x for p in chosen], "y": [p.speedup for p in chosen]},
        ring | {"x": [f.x for f in failed], "y": [0.0] * len(failed), "yaxis": "y2"},
    ]


def spacers(values: Sequence[float]) -> list[Trace]:
    """Nothing to see: room above and below the points, and the failure lane even while nothing has failed."""
    unseen = UNHOVERED | {"type": "scatter", "mode": "markers", "opacity": 0, "x": [0, 0]}
    edges = [min([1.0, *values]) / marks.ROOM_BELOW, max([1.0, *values]) * marks.ROOM_ABOVE]
    return [unseen | {"y": edges}, unseen | {"y": [0, 0], "yaxis": "y2"}]


def failures(failed: Sequence[FailureRow], unapplied: Sequence[UnappliedRow]) -> list[Trace]:
    """Marks in the lane at the foot, by kind; an edit that could not be applied made no kernel and opens none."""
    lane = {"type": "scatter", "mode": "markers", "yaxis": "y2", "hovertemplate": "%{text}<extra></extra>"}
    by_verdict: Mapping[Verdict, list[FailureRow]] = {
        verdict: [f for f in failed if f.verdict is verdict] for verdict in FAILURE_MARKS
    }
    drawn = []
    for verdict, (symbol, colour) in FAILURE_MARKS.items():
        found = by_verdict[verdict]
        drawn.append(lane | {
            "name": wording.VERDICT_NAME[verdict], "x": [f.x for f in found], "y": [0.0] * len(found),
            "customdata": [f.candidate_id for f in found], "text": [_failure(f) for f in found],
            "marker": {"symbol": symbol, "size": 10, "color": colour},
        })  # fmt: skip
    drawn.append(lane | {
        "name": "edit not applied", "x": [u.depth - 0.35 for u in unapplied], "y": [0.0] * len(unapplied),
        "text": [f"depth {u.depth} · {_times(u.count)}edit not applied · {short(u.reason, 84)}" for u in unapplied],
        "marker": {"symbol": "line-ns-open", "size": 12, "color": "@gray-color", "line": {"width": 2}},
    })  # fmt: skip
    return drawn


def _failure(f: FailureRow) -> str:
    what = short(f.summary, 60) or "kernel"
    verdict = f"{_times(f.count)}{wording.VERDICT_NAME[f.verdict]}"
    return f"<b>{what}</b> · {verdict} · kernel {f.number} · {short(f.message, 84)}"


def _times(count: int) -> str:
    return f"{count:,} × " if count > 1 else ""
