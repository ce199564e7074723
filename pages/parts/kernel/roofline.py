"""The roofline as a Plotly figure: ceilings, a kernel, the one that it is compared with, the run's best and the task's
limit, on log scales. Pure but for gathering the kernels."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pages.parts import index, speed_of_light, wording
from pages.parts.kernel import machine_use
from storage.index import queries
from storage.index.queries import AttemptRow, CandidateRow
from storage.results import counters
from storage.results.hardware_limit import FP8, PRODUCTS_PER_FP32, HardwareLimit, stands_on_float8, useful_rates
from storage.results.policy import PRECISIONS

MEMORY = "memory"
NAMES = {"fp32": "FP32", "tf32": "TF32 tensor", "bf16": "BF16 tensor", FP8: "FP8 tensor", "peak": "arithmetic peak"}
COLOURS = {
    "fp32": "@blue-color", "peak": "@blue-color", "tf32": "@violet-color", "bf16": "@orange-color", FP8: "@red-color",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Point:
    """One kernel: `intensity` in operations per byte, `rate` in operations per second, as `Axes` counts them; `role`
    says what it is to the kernel looked at: this, compared (the nearest ancestor with a profile, or a kernel that a
    person chose), base or best. `is_best`: it is the best of its run, whatever else it is."""

    name: str
    intensity: float
    rate: float
    role: str = "this"
    is_best: bool = False


# The star is the best kernel of a run, as on its curve; the one looked at is filled.
LOOKS = {
    "this": ("circle", "@blue-color", 13),
    "compared": ("circle-open", "@gray-color", 12),
    "base": ("square-open", "@violet-color", 11),
    "best": ("star", "@green-color", 15),
}


@dataclass(frozen=True, slots=True)
class Axes:
    """What is counted, and the roofs over it.

    Attributes:
        work: operations of the task, so that heights compare with the theoretical minimum latency; 0 where they are not
            counted: the operations that each kernel executes, as the profiler counts them, stand in their place.
        slopes: bytes per second by what is written beside the line; the first is that of device memory.
        roofs: operations per second by unit.
        products: what tensor rates are divided by.
        avoidable: operations counted for a task of which a kernel needed fewer: its height would be above every roof.
    """

    work: int
    slopes: Mapping[str, float]
    roofs: Mapping[str, float]
    products: int = 1
    avoidable: int = 0


def axes(measured: Mapping[str, float], limit: HardwareLimit | None, arithmetic: str) -> Axes | None:
    """The machine's rates: those of the profile, else those behind the run's limit line. None where none are known."""
    memory, roofs = measured.get(MEMORY), {unit: rate for unit, rate in measured.items() if unit != MEMORY}
    if limit is None or not limit.min_flop or limit.is_undercut:
        avoidable = limit.min_flop if limit else 0
        return Axes(0, {MEMORY: memory}, roofs, avoidable=avoidable) if memory and roofs else None
    bandwidth, peak = limit.bandwidth_gb_s * 1e9, limit.peak_gflop_s * 1e9
    slopes = {MEMORY: bandwidth}
    if memory and bandwidth > speed_of_light.CACHE * memory:
        slopes = {MEMORY: memory, "memory and caches": bandwidth}
    rates = useful_rates(roofs, arithmetic, has_float8=stands_on_float8(peak, roofs))
    useful = {unit: min(rate, peak) for unit, rate in rates.items()}
    best = max(useful, key=lambda unit: useful[unit], default="peak")
    products = PRODUCTS_PER_FP32 if arithmetic == PRECISIONS[0] and best not in ("fp32", "peak") else 1
    return Axes(limit.min_flop, slopes, useful | {best: peak}, products)


def point(
    name: str, metrics: Mapping[str, float], work: int, latency_ms: float | None, role: str = "this"
) -> Point | None:
    """A kernel's place: the task's operations by its latency and by the bytes that it moved; without them those that it
    executed. None where operations or bytes were not counted."""
    rate, bandwidth = metrics.get("arithmetic throughput"), metrics.get("memory throughput")
    if not work or not latency_ms:
        intensity = metrics.get("arithmetic intensity") or (rate / bandwidth if rate and bandwidth else None)
        return Point(name, intensity, rate, role) if rate and intensity else None
    moved = metrics.get("memory traffic") or (bandwidth or 0) * latency_ms / 1e3
    return Point(name, work / moved, work / (latency_ms / 1e3), role) if moved else None


def task_limit(limit: HardwareLimit | None) -> Point | None:
    """Where a kernel that moves only the least bytes would stand on the roof; None without counted operations, or
    where the limit is not known."""
    if limit is None or not limit.is_known or not limit.min_flop or not limit.min_bytes:
        return None
    name = f"theoretical minimum latency {wording.latency(limit.limit_ms)}"
    return Point(name, limit.min_flop / limit.min_bytes, limit.min_flop / (limit.limit_ms / 1e3))


def figure(chart: Axes, points: Sequence[Point], limit: Point | None) -> dict[str, Any]:
    """Roofs as lines, kernels as marks, an arrow from the kernel compared with to the one looked at."""
    shown = [*points, *([limit] if limit else [])]
    top, fastest = max(chart.roofs.values()), max(chart.slopes.values())
    low, high = _span(chart, shown)
    traces = [_slope(name, rate, low, top) for name, rate in chart.slopes.items()]
    roofs = sorted(chart.roofs.items(), key=lambda item: item[1])
    traces += [_roof(_unit(unit, chart.products), unit, rate, fastest, high) for unit, rate in roofs]
    traces += [_mark(spot, *LOOKS["best" if spot.is_best else spot.role]) for spot in reversed(points)]
    traces += [_mark(limit, "diamond-open", "@red-color", 11)] if limit else []
    by_role = {spot.role: spot for spot in points}
    return {"data": traces, "layout": _layout(low, high, shown, chart) | {"annotations": _arrow(by_role)}}


def counted(chart: Axes, metrics: Mapping[str, float]) -> str:
    """What the axes count, why tensor rates are divided, and what this kernel executes."""
    executed = sum(counters.operations(metrics).values())
    if chart.avoidable:
        work = wording.quantity(float(chart.avoidable), "FLOP")
        return (
            "Both axes count the operations that a kernel executes, as the profiler counts them: a kernel need not do "
            f"all of the task's {work}.{_executed(executed, chart.avoidable)}"
        )
    if not chart.work:
        return (
            "Both axes count the operations that a kernel executes, as the profiler counts them: the task's own are "
            "not counted, so memory alone sets its theoretical minimum latency."
        )
    parts = [
        f"Both axes count the task's {wording.quantity(float(chart.work), 'FLOP')}, whatever a kernel executes for "
        "them; a kernel's rate over that of the theoretical minimum is its share of the limit."
    ]
    if chart.products > 1:
        parts.append(
            f"Tensor rates are divided by {chart.products}: so many TF32 or half-precision products make one that is "
            "as exact as FP32."
        )
    return " ".join(parts) + _executed(executed, chart.work)


def _executed(executed: float, work: int) -> str:
    if not executed:
        return ""
    times = wording.significant(executed / work, 2)
    return f" This kernel executes {wording.quantity(executed, 'FLOP')}, {times} for each of the task's."


def _unit(unit: str, products: int) -> str:
    """`BF16 tensor ÷ 3`."""
    label = NAMES.get(unit, unit)
    return f"{label} ÷ {products}" if products > 1 and unit != "fp32" else label


def name(points: Sequence[Point]) -> str:
    """What a reader hears of the picture: where each kernel stands."""
    unit = "operations per byte"
    places = [
        f"{spot.name} at {wording.quantity(spot.rate, 'FLOP/s')} and {wording.significant(spot.intensity)} {unit}"
        for spot in points
    ]
    return f"Roofline: {'; '.join(places)}"


def _arrow(by_role: Mapping[str, Point]) -> list[dict[str, Any]]:
    """Trap: on a log axis Plotly wants the place of an annotation as a logarithm."""
    other, kernel = by_role.get("compared"), by_role.get("this")
    if other is None or kernel is None:
        return []
    return [{
        "x": math.log10(kernel.intensity), "y": math.log10(kernel.rate), "xref": "x", "yref": "y", "axref": "x",
        "ayref": "y", "ax": math.log10(other.intensity), "ay": math.log10(other.rate), "text": "",
        "showarrow": True, "arrowhead": 2, "arrowwidth": 1.6, "arrowcolor": "@text-color", "standoff": 9,
        "startstandoff": 7,
    }]  # fmt: skip


def _span(chart: Axes, shown: Sequence[Point]) -> tuple[float, float]:
    """Operations per byte from left of everything to right of the furthest ridge."""
    places = [peak / rate for peak in chart.roofs.values() for rate in chart.slopes.values()]
    places += [spot.intensity for spot in shown]
    return min(places) / 12, max(places) * 6


def _slope(name: str, bandwidth: float, low: float, highest: float) -> dict[str, Any]:
    label = f"{name} {wording.quantity(bandwidth, 'B/s')}"
    drawn = _line(label, [low, highest / bandwidth], [low * bandwidth, highest], "@gray-color")
    return drawn if name == MEMORY else drawn | {"line": drawn["line"] | {"dash": "dot"}}


def _roof(name: str, unit: str, peak: float, bandwidth: float, high: float) -> dict[str, Any]:
    label = f"{name} {wording.quantity(peak, 'FLOP/s')}"
    return _line(label, [peak / bandwidth, high], [peak, peak], COLOURS.get(unit, "@gray-color"))


def _line(label: str, x: list[float], y: list[float], colour: str) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines", "name": label, "x": x, "y": y, "line": {"width": 2, "color": colour},
        "hovertemplate": f"{html.escape(label)}<extra></extra>",
    }  # fmt: skip


def _mark(spot: Point, symbol: str, colour: str, size: int) -> dict[str, Any]:
    hover = f"{spot.name}: {wording.quantity(spot.rate, 'FLOP/s')} at {wording.significant(spot.intensity)} FLOP/B"
    return {
        "type": "scatter", "mode": "markers", "name": html.escape(spot.name), "x": [spot.intensity], "y": [spot.rate],
        "marker": {"symbol": symbol, "size": size, "color": colour, "line": {"width": 2, "color": colour}},
        "hovertemplate": f"{html.escape(hover)}<extra></extra>",
    }  # fmt: skip


def _layout(low: float, high: float, shown: Sequence[Point], chart: Axes) -> dict[str, Any]:
    rows = [*(spot.rate for spot in shown), low * chart.slopes[MEMORY]]
    whose = "the task's" if chart.work else "executed"
    grid = {"type": "log", "gridcolor": "@border-color", "zeroline": False}
    bottom, head = math.log10(min(rows) / 2), math.log10(max(chart.roofs.values()) * 3)
    title = {"size": 12}
    across = {"text": f"{whose} FLOP per byte of memory traffic", "font": title, "standoff": 6}
    return {
        "uirevision": "roofline", "hovermode": "closest", "margin": {"l": 96, "r": 14, "t": 30, "b": 66},
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)", "font": {"color": "@text-color", "size": 12},
        # Below the chart, clear of the toolbar, which stands above it.
        "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0, "font": {"size": 11}},
        "xaxis": grid | {"title": across,
                         "range": [math.log10(low), math.log10(high)]} | _ticks(math.log10(low), math.log10(high), ""),
        "yaxis": grid | {"title": {"text": f"{whose} FLOP/s", "font": title}, "range": [bottom, head]}
        | _ticks(bottom, head, "FLOP/s"),
    }  # fmt: skip


def _ticks(low: float, high: float, unit: str) -> dict[str, Any]:
    """Every power of ten of an axis from `low` to `high`, in the words of the rest of the page: 1 PFLOP/s."""
    powers = [10.0**power for power in range(math.ceil(low), math.floor(high) + 1)]
    words = [wording.quantity(value, unit).partition(" ") if unit else (f"{value:g}", "", "") for value in powers]
    return {"tickvals": powers, "ticktext": [f"{float(number):g}{space}{rest}" for number, space, rest in words]}


def points(
    run_id: str, candidate: CandidateRow, attempts: Sequence[AttemptRow], work: int, compared: str | None
) -> list[Point]:
    """The kernel first; each kernel once, under its nearest relation. Empty where its own place is not known; one of
    which only the first launches were profiled has none: their bytes are not those of the task."""
    db = index.current()
    numbers = {a.candidate_id: a.number for a in attempts}
    took = {a.candidate_id: a.latency_ms for a in attempts}
    ancestor = queries.profiled_ancestor(db, run_id, candidate.candidate_id)
    names = {"compared": _relation(compared, candidate, ancestor)}
    marks: list[Point] = []
    for name, roles in relations(candidate, ancestor, compared, attempts):
        also = ", ".join(names.get(role, role) for role in roles if role != "this")
        label = f"kernel {numbers.get(name, '?')}" + (f" ({also})" if also else "")
        is_whole = not queries.cut_profiles(db, run_id, [name])
        spot = is_whole and point(
            label, machine_use.whole(queries.metrics(db, run_id, name)), work, took.get(name), roles[0]
        )
        if spot:
            marks.append(replace(spot, is_best="best" in roles))
        elif roles[0] == "this":
            return []
    return marks


def _relation(compared: str | None, candidate: CandidateRow, ancestor: str | None) -> str:
    if compared == candidate.parent_id:
        return "parent"
    return "nearest profiled ancestor" if compared == ancestor else "chosen to compare with"


def relations(
    candidate: CandidateRow, ancestor: str | None, compared: str | None, attempts: Sequence[AttemptRow]
) -> list[tuple[str, list[str]]]:
    """Each kernel once with all that it is to this one. The arrow starts at the one compared with, so it is never left
    out; the base is, where a person chose another one."""
    best = next((a.candidate_id for a in attempts if a.is_best), None)
    base = candidate.base_id if compared == ancestor else None
    related = (("this", candidate.candidate_id), ("compared", compared), ("base", base), ("best", best))
    by_kernel: dict[str, list[str]] = {}
    for role, name in related:
        if name:
            by_kernel.setdefault(name, []).append(role)
    return list(by_kernel.items())
