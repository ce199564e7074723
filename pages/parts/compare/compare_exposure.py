"""Early against delayed profiling: runs of one task grouped by when the model first saw a profile. Pure.

Several runs of a group make one curve, their geometric mean, with a band from the lowest to the highest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pages.parts import wording
from pages.parts.compare import compare_curve
from pages.parts.compare.compared_runs import AXIS_TITLE, Axis, Compared, geometric_mean

EARLY_UNTIL = 2


class Exposure(StrEnum):
    """When the prompts of a run first showed a profile."""

    NEVER = "never shown"
    EARLY = "early"
    DELAYED = "delayed"


LOOKS = {
    Exposure.EARLY: ("@orange-color", "dash", "square", "@orange-background-color/60"),
    Exposure.DELAYED: ("@blue-color", "solid", "circle", "@blue-background-color/60"),
    Exposure.NEVER: ("@gray-color", "dot", "diamond", "@gray-background-color/60"),
}


@dataclass(frozen=True, slots=True)
class Spot:
    """The group at one depth: geometric mean, lowest and highest of the best speed-ups so far of `count` runs."""

    depth: int
    mean: float
    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True)
class Group:
    """Runs with the same exposure; `exposed_at` are the depths at which theirs began."""

    exposure: Exposure
    letters: tuple[str, ...]
    exposed_at: tuple[int, ...]
    spots: tuple[Spot, ...]

    @property
    def name(self) -> str:
        """Exposure, its depths and the runs in it."""
        when = f" (from depth {', '.join(map(str, self.exposed_at))})" if self.exposed_at else ""
        mean = "" if len(self.letters) == 1 else f", geometric mean of {len(self.letters)} runs"
        return f"{self.exposure}{when}: {', '.join(self.letters)}{mean}"


def exposure_of(exposed_at: int | None) -> Exposure:
    """Early means by depth 2: before the kernel's structure has settled."""
    if exposed_at is None:
        return Exposure.NEVER
    return Exposure.EARLY if exposed_at <= EARLY_UNTIL else Exposure.DELAYED


def groups(runs: Sequence[Compared]) -> list[Group]:
    """The groups that have a run with a correct kernel, early first."""
    found = []
    for exposure in LOOKS:
        members = [run for run in runs if exposure_of(run.conditions.exposed_at) is exposure]
        spots = _spots(members)
        if spots:
            begun = sorted({r.conditions.exposed_at for r in members if r.conditions.exposed_at is not None})
            found.append(Group(exposure, tuple(run.letter for run in members), tuple(begun), spots))
    return found


def _spots(members: Sequence[Compared]) -> tuple[Spot, ...]:
    """Depth by depth; a run that has ended stays at its best, one without a correct kernel yet does not count."""
    last = max((row.depth for run in members for row in run.reached), default=-1)
    found = []
    for depth in range(last + 1):
        bests = [best for run in members if (best := _best_by(run, depth)) is not None]
        if bests:
            found.append(Spot(depth, geometric_mean(bests), min(bests), max(bests), len(bests)))
    return tuple(found)


def _best_by(run: Compared, depth: int) -> float | None:
    bests = [row.best_speedup for row in run.reached if row.depth <= depth and row.best_speedup is not None]
    return bests[-1] if bests else None


def figure(found: Sequence[Group], is_log: bool, task: str) -> dict[str, Any]:
    """One curve per group, its band, and where its profiles began."""
    traces = [trace for group in found for trace in _traces(group)]
    values = [value for group in found for spot in group.spots for value in (spot.low, spot.high)]
    layout = compare_curve.layout(AXIS_TITLE[Axis.DEPTH], values, is_log, f"exposure:{task}", len(found))
    marks = [(group, depth) for group in found for depth in group.exposed_at]
    layout["shapes"] = [*layout["shapes"], *(_line(group, depth) for group, depth in marks)]
    notes = [_note(group, depth, number) for number, (group, depth) in enumerate(marks)]
    layout["annotations"] = [*layout["annotations"], *notes]
    return {"data": traces, "layout": layout}


def _traces(group: Group) -> list[dict[str, Any]]:
    colour, dash, symbol, fill = LOOKS[group.exposure]
    depths = [spot.depth for spot in group.spots]
    edge = {"type": "scatter", "mode": "lines", "x": depths, "hoverinfo": "skip", "showlegend": False,
            "legendgroup": group.exposure, "line": {"width": 0, "color": colour}}  # fmt: skip
    band = [
        edge | {"y": [spot.low for spot in group.spots], "name": f"lowest, {group.exposure}"},
        edge | {"y": [spot.high for spot in group.spots], "name": f"highest, {group.exposure}", "fill": "tonexty",
                "fillcolor": fill},
    ]  # fmt: skip
    line = {
        "type": "scatter", "mode": "lines+markers", "name": group.name, "legendgroup": group.exposure,
        "x": depths, "y": [spot.mean for spot in group.spots],
        "line": {"width": 2.6, "color": colour, "dash": dash},
        "marker": {"symbol": symbol, "size": 8, "color": colour},
        "text": [_hover(group, spot) for spot in group.spots], "hovertemplate": "%{text}<extra></extra>",
    }  # fmt: skip
    return [*(band if len(group.letters) > 1 else []), line]


def _hover(group: Group, spot: Spot) -> str:
    band = f", {wording.interval(spot.low, spot.high)} over {spot.count} runs" if spot.count > 1 else ""
    return f"<b>{group.exposure}</b> · depth {spot.depth}<br>best so far {wording.speedup(spot.mean)}{band}"


def _line(group: Group, depth: int) -> dict[str, Any]:
    colour, dash, _, _ = LOOKS[group.exposure]
    return {"type": "line", "xref": "x", "x0": depth - 0.5, "x1": depth - 0.5, "yref": "paper", "y0": 0, "y1": 1,
            "layer": "below", "line": {"color": colour, "width": 1.4, "dash": dash}}  # fmt: skip


def _note(group: Group, depth: int, number: int) -> dict[str, Any]:
    colour, _, _, _ = LOOKS[group.exposure]
    return {"xref": "x", "x": depth - 0.5, "yref": "paper", "y": 1, "yshift": -14 * number,
            "text": f" {group.exposure}: profiles from depth {depth}", "showarrow": False, "xanchor": "left",
            "yanchor": "top", "font": {"size": 10, "color": colour.replace("-color", "-text-color")}}  # fmt: skip
