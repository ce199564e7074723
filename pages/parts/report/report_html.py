"""Reports from templates, every value escaped on its way in. Knows sources, differences and curves, not what they are
shown for."""

from __future__ import annotations

import html
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pages.parts import client, wording
from pages.parts.widgets import code, plot
from storage.differences import unified

DIFF_LINES = 600
SOURCE_LINES = 4_000
PRINTED = 14  # step indexes on paper, each in a line: as many as fit on two pages with the rest
BOX = LEFT, TOP, RIGHT, BOTTOM = 62, 14, 924, 354
TEXT_PX = 14.0  # from one line of text to the next
STROKES = {"solid": "none", "dash": "9 6", "dot": "2 5", "dashdot": "9 5 2 5", "longdash": "16 7"}


def escape(value: object) -> Markup:
    """A value as HTML; what is HTML already stays. Characters that no document may hold become a sign."""
    if isinstance(value, Markup):
        return value
    printable = "".join(c if c in "\n\t" or (c.isprintable() or c == "\u00a0") else "\ufffd" for c in f"{value}")
    return Markup(html.escape(printable))


def coloured(lines: Sequence[code.Line]) -> Markup:
    """Lines of a kernel, coloured."""
    return Markup("\n".join(code.as_html(line) for line in lines))


def changed_lines(old: str, new: str, around: int = 3) -> list[str]:
    """What changed, as a unified diff without its head."""
    return unified(old.split("\n"), new.split("\n"), around)


# Values are escaped by `escape`; autoescape is what stands behind it.
ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True, finalize=escape, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
)  # fmt: skip
ENVIRONMENT.globals |= {
    "changed_lines": changed_lines, "code": code, "coloured": coloured, "wording": wording,
    "PRINTED": PRINTED, "DIFF_LINES": DIFF_LINES, "SOURCE_LINES": SOURCE_LINES, "BOX": BOX, "STROKES": STROKES,
}  # fmt: skip


def render(template: str, title: str, **context: Any) -> str:
    """The whole file as text.

    Raises:
        jinja2.UndefinedError: the template asks for something else than `context`.
    """
    style = Markup(client.read("report/report.css"))
    return ENVIRONMENT.get_template(template).render(context, title=title, style=style, now=time.time())


@dataclass(frozen=True, slots=True)
class Spot:
    """One point: where, what it says, where it leads (empty: nowhere), and its 95 % interval, if it is shown."""

    x: float
    y: float
    text: str
    href: str = ""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """One line of steps through `steps` and loose points; `tone` is a colour of report.css."""

    name: str
    tone: str
    dash: str
    steps: Sequence[Spot]
    points: Sequence[Spot] = ()
    label: str = ""


@dataclass(frozen=True, slots=True)
class Level:
    """A horizontal line with its name, empty where it shares that of another; the best alternative stands out."""

    value: float
    name: str
    is_best: bool = False


def apart(heights: Sequence[float]) -> list[float]:
    """Heights of texts, moved down as far as needed that none is printed over another."""
    moved, last = list(heights), -math.inf
    for number in sorted(range(len(heights)), key=heights.__getitem__):
        last = moved[number] = max(heights[number], last + TEXT_PX)
    return moved


class Curve:
    """Series and levels in a frame: x linear, y logarithmic. With `is_whole` the x axis counts depths."""

    def __init__(
        self, name: str, x_title: str, series: Sequence[Series], levels: Sequence[Level], is_whole: bool = True
    ) -> None:
        self.name, self.x_title, self.series = name, x_title, series
        spots = [spot for line in series for spot in (*line.steps, *line.points)]
        xs = [spot.x for spot in spots] or [0.0]
        ys = [y for spot in spots for y in (spot.y, spot.low, spot.high) if y] or [1.0]
        near = [level.value for level in levels if min(ys) / 2 <= level.value <= max(ys) * 3]
        self._x = min(0.0, *xs, 0.0), max([*xs, min(xs) + 1e-9])
        self._y = low, high = min([*ys, *near]) / 1.12, max([*ys, *near]) * 1.15
        self.levels = [level for level in levels if low <= level.value <= high]
        self.y_ticks = plot.log_ticks(low, high)
        step = self._step(is_whole)
        self.x_ticks = [round(k * step, 10) for k in range(int(self._x[1] / step) + 1)]

    def x(self, value: float) -> float:
        """Pixels from the left."""
        low, high = self._x
        return LEFT + (value - low) / (high - low or 1.0) * (RIGHT - LEFT)

    def y(self, value: float) -> float:
        """Pixels from the top."""
        low, high = self._y
        return BOTTOM - math.log(value / low) / (math.log(high / low) or 1.0) * (BOTTOM - TOP)

    def level_names(self) -> list[tuple[float, str]]:
        """Pixels from the top at which the name of each level stands: over its line, else under it, else as far below
        as there is room, so that no level strikes through it."""
        taken: list[float] = []
        lines = [self.y(level.value) for level in self.levels]
        named = sorted((level for level in self.levels if level.name), key=lambda level: -level.value)
        for level in named:
            under = self.y(level.value) + TEXT_PX
            places = [under - TEXT_PX - 5, *(under + k * TEXT_PX / 2 for k in range(2 * len(self.levels) + 1))]
            free = (y for y in places if all(abs(y - other) >= TEXT_PX for other in taken)
                    and not any(y - TEXT_PX + 3 < line < y + 3 for line in lines))  # fmt: skip
            taken.append(next(free, places[0]))
        return list(zip(taken, (level.name for level in named), strict=True))

    def labels(self) -> list[tuple[float, float, str]]:
        """Where the label of each series stands, behind its last step: pixels from the left and from the top."""
        ends = [(line.steps[-1], line.label) for line in self.series if line.label and line.steps]
        heights = apart([self.y(end.y) + 4 for end, _ in ends])
        return [(self.x(end.x) + 9, height, label) for (end, label), height in zip(ends, heights, strict=True)]

    def path(self, line: Series) -> str:
        """The steps of a series as SVG draws them."""
        pixels = [(self.x(spot.x), self.y(spot.y)) for spot in line.steps]
        drawn = [f"H{x:.1f}V{y:.1f}" if at else f"M{x:.1f} {y:.1f}" for at, (x, y) in enumerate(pixels)]
        return "".join(drawn) or "M0 0"

    def _step(self, is_whole: bool) -> float:
        low, high = self._x
        if is_whole:
            return float(plot.tick_step(int(high)))
        rough = (high - low or 1.0) / 8
        power = 10.0 ** math.floor(math.log10(rough))
        return next(power * k for k in (1, 2, 5, 10) if power * k >= rough)
