"""Lines, bands and flags around the points of the speed-up curve. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pages.parts import wording
from storage.queries import SteeringMark
from storage.records import CommandKind

Shape = dict[str, Any]
LANE: Shape = {
    "type": "rect", "xref": "paper", "x0": 0, "x1": 1, "yref": "paper", "y0": 0, "y1": 0.12, "layer": "below",
    "fillcolor": "@gray-background-color/45", "line": {"width": 0},
}  # fmt: skip


def reference_lines(limit: float | None, target: float | None, top: float) -> tuple[list[Shape], list[Shape]]:
    """Baseline, target and hardware limit; a limit far above all points is named at the edge and not drawn to scale."""
    shapes = [_line(1.0, "@gray-color", "dash")]
    notes = [_note(1.0, "eager baseline 1×", "@gray-text-color")]
    for value, name, colour in ((target, "target", "@violet-color"), (limit, "hardware limit", "@red-color")):
        if value is None:
            continue
        if 0.5 * top <= value <= 3 * top:
            shapes.append(_line(value, colour, "dashdot"))
            # At the left, where curves are low: the best kernel and its label stand at the right.
            notes.append(_note(value, f"{name} {wording.speedup(value)}", colour) | {"x": 0, "xanchor": "left"})
        else:
            notes.append(_edge_note(f"{name} {wording.speedup(value)} {'↑' if value > top else '↓'}", colour))
    return shapes, notes


def exposure_bands(depths: Sequence[int]) -> list[Shape]:
    """Shaded where the model was shown a profile; neighbouring depths make one band, named once."""
    bands: list[list[int]] = []
    for depth in sorted(set(depths)):
        if bands and depth == bands[-1][1] + 1:
            bands[-1][1] = depth
        else:
            bands.append([depth, depth])
    label = {
        "text": "model sees profiles",
        "textposition": "top left",
        "font": {"size": 10, "color": "@violet-text-color"},
    }
    return [
        {"type": "rect", "xref": "x", "x0": first - 0.7, "x1": last + 0.3, "yref": "paper", "y0": 0.12, "y1": 1,
         "layer": "below", "fillcolor": "@violet-background-color/60", "line": {"width": 0}, "label": label}
        for first, last in bands
    ]  # fmt: skip


def steering_flags(found: Sequence[SteeringMark]) -> tuple[list[Shape], list[Shape]]:
    """One flag per depth in which a person steered, with the verbs."""
    by_depth: dict[int, list[SteeringMark]] = {}
    for mark in found:
        if mark.kind not in (CommandKind.PAUSE, CommandKind.RESUME):
            by_depth.setdefault(mark.depth, []).append(mark)
    shapes, notes = [], []
    for depth, marks in by_depth.items():
        verbs = list(dict.fromkeys(wording.COMMAND_NAME[mark.kind] for mark in marks))
        shapes.append({"type": "line", "xref": "x", "x0": depth - 0.72, "x1": depth - 0.72,
                       "yref": "paper", "y0": 0, "y1": 1,
                       "line": {"color": "@orange-color", "width": 1.2, "dash": "dot"}})  # fmt: skip
        notes.append({"xref": "x", "x": depth - 0.72, "yref": "paper", "y": 0.17, "text": f"⚑ {', '.join(verbs)}",
                      "showarrow": False, "xanchor": "left", "yanchor": "bottom", "xshift": 3,
                      "font": {"size": 11, "color": "@orange-text-color"}})  # fmt: skip
    return shapes, notes


def _line(y: float, colour: str, dash: str) -> Shape:
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": y, "y1": y, "layer": "below",
            "line": {"color": colour, "width": 1.4, "dash": dash}}  # fmt: skip


def _note(y: float, text: str, colour: str) -> Shape:
    return {"xref": "paper", "x": 1, "yref": "y", "y": y, "text": text, "showarrow": False, "xanchor": "right",
            "yanchor": "bottom", "font": {"size": 11, "color": colour}}  # fmt: skip


def _edge_note(text: str, colour: str) -> Shape:
    return {"xref": "paper", "x": 1, "yref": "paper", "y": 1, "text": text, "showarrow": False, "xanchor": "right",
            "yanchor": "bottom", "font": {"size": 11, "color": colour}}  # fmt: skip


def in_log_units(notes: Sequence[Shape]) -> list[Shape]:
    """Plotly takes shapes on a log axis as they are, but annotations as powers of ten."""
    return [n | {"y": math.log10(n["y"])} if n["yref"] == "y" else n for n in notes]
