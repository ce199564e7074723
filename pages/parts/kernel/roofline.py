"""The roofline as a Plotly figure: ceilings, a kernel, its ancestor, its base, the run's best and the task's limit, on
log scales. Pure but for gathering the kernels."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pages.parts import index, wording
from pages.parts.kernel import machine_use
from storage import queries
from storage.hardware_limit import HardwareLimit
from storage.queries import AttemptRow, CandidateRow

MEMORY = "memory"
NAMES = {"fp32": "FP32", "tf32": "TF32 tensor", "bf16": "BF16 tensor", "peak": "arithmetic peak"}
COLOURS = {"fp32": "@blue-color", "peak": "@blue-color", "tf32": "@violet-color", "bf16": "@orange-color"}


@dataclass(frozen=True, slots=True)
class Point:
    """One kernel: `intensity` in operations per byte, `rate` in operations per second; `role` says what it is to the
    kernel looked at: this, parent (or the nearest ancestor with a profile), base or best."""

    name: str
    intensity: float
    rate: float
    role: str = "this"


LOOKS = {
    "this": ("star", "@green-color", 15),
    "parent": ("circle-open", "@gray-color", 12),
    "base": ("square-open", "@violet-color", 11),
    "best": ("triangle-up-open", "@orange-color", 13),
}


def point(name: str, metrics: Mapping[str, float], role: str = "this") -> Point | None:
    """A profile's place, from its whole-call figures; None where operations or bytes were not counted."""
    rate, bandwidth = metrics.get("arithmetic throughput"), metrics.get("memory throughput")
    intensity = metrics.get("arithmetic intensity") or (rate / bandwidth if rate and bandwidth else None)
    return Point(name, intensity, rate, role) if rate and intensity else None


def ceilings(measured: Mapping[str, float], limit: HardwareLimit | None) -> dict[str, float]:
    """The machine's rates: those of the profile, else those behind the run's limit line."""
    if measured.get(MEMORY):
        return dict(measured)
    return {MEMORY: limit.bandwidth_gb_s * 1e9, "peak": limit.peak_gflop_s * 1e9} if limit else {}


def task_limit(rates: Mapping[str, float], limit: HardwareLimit | None) -> Point | None:
    """Where a kernel that moves only the least bytes would stand on the roof; None without counted operations."""
    if limit is None or not limit.min_flop or not limit.min_bytes or not rates:
        return None
    return Point("the task's limit", limit.min_flop / limit.min_bytes, limit.min_flop / (limit.limit_ms / 1e3))


def figure(rates: Mapping[str, float], points: Sequence[Point], limit: Point | None) -> dict[str, Any]:
    """Roofs as lines, kernels as marks, an arrow from the parent to the kernel looked at."""
    shown = [*points, *([limit] if limit else [])]
    arithmetic = {name: rate for name, rate in rates.items() if name != MEMORY}
    low, high = _span(rates[MEMORY], list(arithmetic.values()), shown)
    traces = [_slope(rates[MEMORY], low, max(arithmetic.values()))]
    traces += [_roof(name, rate, rates[MEMORY], high) for name, rate in sorted(arithmetic.items(), key=_by_rate)]
    traces += [_mark(one, *LOOKS[one.role]) for one in reversed(points)]
    traces += [_mark(limit, "diamond-open", "@red-color", 11)] if limit else []
    by_role = {one.role: one for one in points}
    return {"data": traces, "layout": _layout(low, high, shown, rates) | {"annotations": _arrow(by_role)}}


def name(points: Sequence[Point]) -> str:
    """What a reader hears of the picture: where each kernel stands."""
    unit = "operations per byte"
    places = [
        f"{one.name} at {wording.quantity(one.rate, 'FLOP/s')} and {wording.significant(one.intensity)} {unit}"
        for one in points
    ]
    return f"Roofline: {'; '.join(places)}"


def _arrow(by_role: Mapping[str, Point]) -> list[dict[str, Any]]:
    """Trap: on a log axis Plotly wants the place of an annotation as a logarithm."""
    parent, kernel = by_role.get("parent"), by_role.get("this")
    if parent is None or kernel is None:
        return []
    return [{
        "x": math.log10(kernel.intensity), "y": math.log10(kernel.rate), "xref": "x", "yref": "y", "axref": "x",
        "ayref": "y", "ax": math.log10(parent.intensity), "ay": math.log10(parent.rate), "text": "",
        "showarrow": True, "arrowhead": 2, "arrowwidth": 1.6, "arrowcolor": "@text-color", "standoff": 9,
        "startstandoff": 7,
    }]  # fmt: skip


def _by_rate(item: tuple[str, float]) -> float:
    return item[1]


def _span(bandwidth: float, peaks: Sequence[float], shown: Sequence[Point]) -> tuple[float, float]:
    """Operations per byte from left of everything to right of the furthest ridge."""
    ridges = [peak / bandwidth for peak in peaks]
    places = [*ridges, *(one.intensity for one in shown)]
    return min(places) / 12, max(places) * 6


def _slope(bandwidth: float, low: float, highest: float) -> dict[str, Any]:
    label = f"memory {wording.quantity(bandwidth, 'B/s')}"
    return _line(label, [low, highest / bandwidth], [low * bandwidth, highest], "@gray-color")


def _roof(name: str, peak: float, bandwidth: float, high: float) -> dict[str, Any]:
    label = f"{NAMES.get(name, name)} {wording.quantity(peak, 'FLOP/s')}"
    return _line(label, [peak / bandwidth, high], [peak, peak], COLOURS.get(name, "@gray-color"))


def _line(label: str, x: list[float], y: list[float], colour: str) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines", "name": label, "x": x, "y": y, "line": {"width": 2, "color": colour},
        "hovertemplate": f"{html.escape(label)}<extra></extra>",
    }  # fmt: skip


def _mark(one: Point, symbol: str, colour: str, size: int) -> dict[str, Any]:
    hover = f"{one.name}: {wording.quantity(one.rate, 'FLOP/s')} at {wording.significant(one.intensity)} FLOP/B"
    return {
        "type": "scatter", "mode": "markers", "name": html.escape(one.name), "x": [one.intensity], "y": [one.rate],
        "marker": {"symbol": symbol, "size": size, "color": colour, "line": {"width": 2, "color": colour}},
        "hovertemplate": f"{html.escape(hover)}<extra></extra>",
    }  # fmt: skip


def _layout(low: float, high: float, shown: Sequence[Point], rates: Mapping[str, float]) -> dict[str, Any]:
    rows = [*(one.rate for one in shown), low * rates[MEMORY]]
    top = max(rate for name, rate in rates.items() if name != MEMORY)
    grid = {"type": "log", "gridcolor": "@border-color", "zeroline": False}
    bottom, head = math.log10(min(rows) / 2), math.log10(top * 3)
    title = {"size": 12}
    return {
        "uirevision": "roofline", "hovermode": "closest", "margin": {"l": 96, "r": 14, "t": 30, "b": 66},
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)", "font": {"color": "@text-color", "size": 12},
        # Below the chart, clear of the toolbar, which stands above it.
        "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0, "font": {"size": 11}},
        "xaxis": grid | {"title": {"text": "operations per byte of memory traffic", "font": title, "standoff": 6},
                         "range": [math.log10(low), math.log10(high)]} | _ticks(math.log10(low), math.log10(high), ""),
        "yaxis": grid | {"title": {"text": "operations per second", "font": title}, "range": [bottom, head]}
        | _ticks(bottom, head, "FLOP/s"),
    }  # fmt: skip


def _ticks(low: float, high: float, unit: str) -> dict[str, Any]:
    """Every power of ten of an axis from `low` to `high`, in the words of the rest of the page: 1 PFLOP/s."""
    found = [10.0**power for power in range(math.ceil(low), math.floor(high) + 1)]
    words = [wording.quantity(value, unit).partition(" ") if unit else (f"{value:g}", "", "") for value in found]
    return {"tickvals": found, "ticktext": [f"{float(number):g}{space}{rest}" for number, space, rest in words]}


def points(run_id: str, candidate: CandidateRow, attempts: Sequence[AttemptRow]) -> list[Point]:
    """The kernel first; each kernel once, under its nearest relation. Empty where its own place is not known."""
    db = index.current()
    numbers = {a.candidate_id: a.number for a in attempts}
    found: list[Point] = []
    for name, roles in relations(candidate, queries.profiled_ancestor(db, run_id, candidate.candidate_id), attempts):
        names = {"parent": "parent" if name == candidate.parent_id else "nearest profiled ancestor"}
        also = ", ".join(names.get(role, role) for role in roles if role != "this")
        label = f"kernel {numbers.get(name, '?')}" + (f" ({also})" if also else "")
        place = point(label, machine_use.whole(queries.metrics(db, run_id, name)), roles[0])
        if place:
            found.append(place)
        elif roles[0] == "this":
            return []
    return found


def relations(
    candidate: CandidateRow, ancestor: str | None, attempts: Sequence[AttemptRow]
) -> list[tuple[str, list[str]]]:
    """Each kernel once with all that it is to this one. The arrow starts at the ancestor, so it is never left out."""
    best = next((a.candidate_id for a in attempts if a.is_best), None)
    related = (("this", candidate.candidate_id), ("parent", ancestor), ("base", candidate.base_id), ("best", best))
    found: dict[str, list[str]] = {}
    for role, name in related:
        if name:
            found.setdefault(name, []).append(role)
    return list(found.items())
