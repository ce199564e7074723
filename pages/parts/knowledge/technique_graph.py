"""States and the techniques that are known for them, or techniques and those that followed them, as a picture: an edge
per pair, as wide as it was tried often, in the colour of what it gained."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pages.parts import wording
from pages.parts.widgets import plot
from storage.knowledge.browsing import EdgeRow
from storage.knowledge.figures import Reckoning
from storage.knowledge.graph import START
from storage.knowledge.records import Figures, Technique

ROW_PX = 17
LEAST_PX = 300
MARGIN_PX = 34
LABEL_PX = 6.4  # of one letter
CURVE = 24  # points of an edge: each is a place to point at
WIDTHS = ((16, 4.5), (5, 3.0), (2, 1.9), (1, 1.2), (0, 0.8))
CATEGORY_COLOUR = {"memory": "@blue-color", "compute": "@orange-color", "latency": "@violet-color"}
OTHER_COLOUR = "@gray-color"
MOST_LABELS = 40  # edges with N and Q beside them
MOST_BETWEEN = 400  # edges from technique to technique
# Where the other end of an edge lies; what it is drawn in by what was measured.
FASTER, SLOWER, SAME = "faster", "slower", "no measurable difference"
FAILED, UNTRIED = "failed only", "not tried yet"
EDGE_COLOUR = {
    FASTER: "@green-color/70",
    SLOWER: "@red-color/70",
    SAME: "@gray-color/80",
    FAILED: "@red-color/70",
    UNTRIED: "@gray-color/50",
}
LEAST_WIDTH_PX = 760
END = (None, None)


@dataclass(frozen=True, slots=True)
class Edge:
    """One pair of a state, or of a technique before, and a technique, with what was measured of it there. `value` is Q
    of an edge between techniques, of which N is the number of attempts."""

    state: str
    technique: str
    category: str
    figures: Figures
    value: float | None = None

    @property
    def kind(self) -> str:
        """What its attempts came to, by their outcomes; of faster and slower ones what their mean gain says."""
        seen = self.figures
        if not seen.attempts:
            return UNTRIED
        if seen.mean_gain is None:
            return FAILED
        if seen.faster and seen.slower:
            return FASTER if seen.mean_gain > 1 else SLOWER
        return FASTER if seen.faster else SLOWER if seen.slower else SAME


def draw(edges: Sequence[Edge], key: str, left: str = "state") -> str | None:
    """Draw them and return the technique clicked just now, if any. `left` is what stands at the left."""
    states, techniques = len({edge.state for edge in edges}), len({edge.technique for edge in edges})
    name = f"{wording.counted(states, left)} and {wording.counted(techniques, 'technique')}, an edge for each pair"
    height = max(LEAST_PX, ROW_PX * max(states, techniques) + 2 * MARGIN_PX)
    return plot.draw(figure(edges), name, height, key, key=key, least_width=LEAST_WIDTH_PX)


def figure(edges: Sequence[Edge]) -> dict[str, Any]:
    """States at the left, techniques at the right, next to those that share their states."""
    lefts, rights = places(edges)
    categories = {edge.technique: edge.category for edge in edges}
    layout = {
        "uirevision": "graph", "hovermode": "closest", "hoverdistance": 14, "showlegend": True,
        "margin": {"l": room(lefts), "r": room(rights), "t": MARGIN_PX, "b": 8},
        "font": {"color": "@text-color", "size": 12},
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "hoverlabel": {"bgcolor": "@secondary-background-color", "font": {"color": "@text-color"}},
        "legend": {"orientation": "h", "y": 1, "yanchor": "bottom", "itemclick": False, "itemdoubleclick": False},
        "xaxis": {"visible": False, "range": [-0.015, 1.015], "fixedrange": True},
        "yaxis": {"visible": False, "range": [1.0, 0.0], "fixedrange": True},
    }  # fmt: skip
    labels = list(_labels(edges, lefts, rights)) if len(edges) <= MOST_LABELS else []
    nodes = [
        *labels,
        _nodes(lefts, 0.0, "square", dict.fromkeys(lefts, "@text-color"), "state"),
        _nodes(rights, 1.0, "circle", {name: _colour(categories[name]) for name in rights}, "technique"),
    ]
    return {"data": [*_edges(edges, lefts, rights), *nodes], "layout": layout}


def places(edges: Sequence[Edge]) -> tuple[dict[str, float], dict[str, float]]:
    """Where each state and each technique stands, from 0 at the top to 1: techniques in the order of the middle of
    their states, so that edges cross little."""
    states = list(dict.fromkeys(edge.state for edge in edges))
    lefts = {name: (number + 0.5) / len(states) for number, name in enumerate(states)}
    heights: dict[str, list[float]] = {}
    for edge in edges:
        heights.setdefault(edge.technique, []).append(lefts[edge.state])
    ordered = sorted(heights, key=lambda name: (sum(heights[name]) / len(heights[name]), name))
    return lefts, {name: (number + 0.5) / len(ordered) for number, name in enumerate(ordered)}


def room(names: Mapping[str, float]) -> int:
    """Pixels for the longest of these names."""
    return round(LABEL_PX * max(map(len, names), default=0)) + 14


def _nodes(at: Mapping[str, float], x: float, symbol: str, colours: Mapping[str, str], kind: str) -> dict[str, Any]:
    is_left = x == 0.0
    return {
        "type": "scatter", "mode": "markers+text", "x": [x] * len(at), "y": list(at.values()), "cliponaxis": False,
        "marker": {"symbol": symbol, "size": 9, "color": [colours[name] for name in at]}, "showlegend": False,
        "text": [html.escape(name, quote=False) for name in at], "textfont": {"size": 11},
        "textposition": "middle left" if is_left else "middle right", "hoverinfo": "skip",
        "customdata": [None if is_left else name for name in at], "name": kind,
    }  # fmt: skip


def _edges(edges: Sequence[Edge], lefts: Mapping[str, float], rights: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    """One trace for all edges of a colour and a width, those that were not tried at the bottom."""
    named: set[str] = set()
    for kind in (UNTRIED, SAME, FAILED, SLOWER, FASTER):
        for least, width in reversed(WIDTHS):
            chosen = [edge for edge in edges if edge.kind == kind and _width(edge.figures.attempts) == (least, width)]
            if not chosen:
                continue
            # Trap: None ends a line, so that the next edge is not joined to this one.
            points = [
                (edge, *point) for edge in chosen for point in (*curve(lefts[edge.state], rights[edge.technique]), END)
            ]
            dash = "dot" if kind in (UNTRIED, FAILED) else "solid"
            yield {
                "type": "scatter", "mode": "lines", "x": [x for _, x, _ in points], "y": [y for _, _, y in points],
                "text": [hover(edge) for edge, _, _ in points], "customdata": [edge.technique for edge, _, _ in points],
                "line": {"color": EDGE_COLOUR[kind], "width": width, "dash": dash}, "name": kind,
                "legendgroup": kind, "showlegend": kind not in named, "hovertemplate": "%{text}<extra></extra>",
            }  # fmt: skip
            named.add(kind)


def curve(start: float, end: float) -> Iterator[tuple[float, float]]:
    """Points from the left to the right that leave and arrive level."""
    for number in range(CURVE + 1):
        t = number / CURVE
        yield t, start + (end - start) * t * t * (3 - 2 * t)


def hover(edge: Edge) -> str:
    """What is told of an edge."""
    ends, seen = html.escape(f"{edge.state} → {edge.technique}", quote=False), edge.figures
    expected = f"expected {wording.speedup(seen.expected_gain)}, confidence {wording.percent(seen.confidence)}"
    if not seen.attempts:
        return f"<b>{ends}</b><br>not tried yet<br>{expected}"
    if edge.value is not None:
        expected += f"<br>{counted(edge)}"
    others = {SLOWER: seen.slower, SAME: seen.same, "failed": seen.failed}
    outcomes = [f"{seen.faster} faster", *(f"{count} {kind}" for kind, count in others.items() if count)]
    tried = ", ".join([wording.counted(seen.attempts, "attempt"), *outcomes])
    return f"<b>{ends}</b><br>{tried}, mean gain {wording.speedup(seen.mean_gain)}<br>{expected}"


def _labels(edges: Sequence[Edge], lefts: Mapping[str, float], rights: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    """N and Q near the right end of each edge that has a value."""
    shown = [edge for edge in edges if edge.value is not None and edge.figures.attempts]
    if shown:
        at = [list(curve(lefts[edge.state], rights[edge.technique]))[CURVE * 4 // 5] for edge in shown]
        yield {
            "type": "scatter", "mode": "text", "x": [x for x, _ in at], "y": [y for _, y in at], "hoverinfo": "skip",
            "text": [counted(edge) for edge in shown], "textfont": {"size": 10}, "showlegend": False, "name": "N and Q",
        }  # fmt: skip


def counted(edge: Edge) -> str:
    """N and Q of an edge between techniques."""
    return f"N {edge.figures.attempts:,} · Q {edge.value or 0.0:+.2f}"


def _width(attempts: int) -> tuple[int, float]:
    return next(width for width in WIDTHS if attempts >= width[0])


def _colour(category: str) -> str:
    return CATEGORY_COLOUR.get(category, OTHER_COLOUR)


def edges_of(reckoned: Reckoning, state: str = "", is_tried_only: bool = False) -> list[Edge]:
    """Every pair of a state and a technique in use, of one state or of all."""
    edges = []
    for name, entry in reckoned.known.states.items():
        if entry.is_disabled or state not in ("", name):
            continue
        for technique in reckoned.techniques_of(name):
            seen = reckoned.figures(technique, name)
            if seen.attempts or not is_tried_only:
                edges.append(Edge(name, technique, reckoned.known.techniques[technique].category, seen))
    return edges


def edges_between(
    rows: Sequence[EdgeRow], techniques: Mapping[str, Technique], is_tried_only: bool = False
) -> list[Edge]:
    """One technique after another, those tried most: the first kernels at the top, then techniques by their names."""
    edges = [
        Edge(
            row.source,
            row.target,
            techniques[row.target].category if row.target in techniques else "",
            row.figures,
            row.value,
        )
        for row in rows
        if row.figures.attempts or not is_tried_only
    ]
    edges = sorted(edges, key=lambda edge: -edge.figures.attempts)[:MOST_BETWEEN]
    return sorted(edges, key=lambda edge: (edge.state != START, edge.state, edge.technique))
