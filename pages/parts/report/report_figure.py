"""A curve as inline SVG: no script, no library. What a point is shows on hover, and its link leads to its depth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pages.parts.report.report_html import Html, element, join
from pages.parts.widgets import plot

WIDTH, HEIGHT = 960.0, 400.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 36.0, 14.0, 46.0
STROKES = {"solid": "", "dash": "9 6", "dot": "2 5", "dashdot": "9 5 2 5", "longdash": "16 7"}


@dataclass(frozen=True, slots=True)
class Spot:
    """One point: where, what it says, and where it leads (empty: nowhere)."""

    x: float
    y: float
    text: str
    href: str = ""


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
    """A horizontal line with its name."""

    value: float
    name: str


@dataclass(frozen=True, slots=True)
class Frame:
    """Data to pixels: x linear, y logarithmic."""

    low_x: float
    high_x: float
    low_y: float
    high_y: float

    def x(self, value: float) -> float:
        """Pixels from the left."""
        return LEFT + (value - self.low_x) / (self.high_x - self.low_x or 1.0) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """Pixels from the top."""
        share = math.log(value / self.low_y) / (math.log(self.high_y / self.low_y) or 1.0)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def draw(name: str, x_title: str, series: Sequence[Series], levels: Sequence[Level], is_whole: bool = True) -> Html:
    """The figure with its legend; `is_whole`: the x axis counts depths."""
    frame = _frame(series, levels)
    inside = [
        *_grid(frame, x_title, is_whole),
        *(_level(frame, level) for level in levels if frame.low_y <= level.value <= frame.high_y),
        *(_line(frame, one) for one in series),
        *(_spot(frame, one, spot, 3.6) for one in series for spot in one.points),
        *(_spot(frame, one, spot, 5.0) for one in series for spot in one.steps),
        *(_end(frame, one) for one in series if one.label and one.steps),
    ]
    drawn = element("svg", *inside, viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}", role="figure", aria_label=name)
    return join([element("div", drawn, class_="figure", tabindex="0", role="region", aria_label=name), _legend(series)])


def _frame(series: Sequence[Series], levels: Sequence[Level]) -> Frame:
    spots = [spot for one in series for spot in (*one.steps, *one.points)]
    xs, ys = [spot.x for spot in spots] or [0.0], [spot.y for spot in spots] or [1.0]
    near = [level.value for level in levels if min(ys) / 2 <= level.value <= max(ys) * 3]
    low, high = min([*ys, *near]) / 1.12, max([*ys, *near]) * 1.15
    return Frame(min(0.0, *xs, 0.0), max([*xs, min(xs) + 1e-9]), low, high)


def _grid(frame: Frame, x_title: str, is_whole: bool) -> list[Html]:
    known = plot.FINE if frame.high_y / frame.low_y < 6 else plot.COARSE
    ticks = [t for t in known if frame.low_y <= t <= frame.high_y]
    parts = [_text(LEFT - 8, frame.y(t) + 4, f"{t:g}×", "end", "small") for t in ticks]
    parts += [_rule("grid", LEFT, frame.y(t), WIDTH - RIGHT, frame.y(t)) for t in ticks]
    for x in _x_ticks(frame, is_whole):
        parts.append(_rule("grid", frame.x(x), TOP, frame.x(x), HEIGHT - BOTTOM))
        parts.append(_text(frame.x(x), HEIGHT - BOTTOM + 18, f"{x:g}", "middle", "small"))
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [*parts, _text(middle, HEIGHT - 8, x_title, "middle", "small")]


def _x_ticks(frame: Frame, is_whole: bool) -> list[float]:
    if is_whole:
        step = float(plot.tick_step(int(frame.high_x)))
    else:
        rough = (frame.high_x - frame.low_x or 1.0) / 8
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * k for k in (1, 2, 5, 10) if power * k >= rough)
    return [round(k * step, 10) for k in range(int(frame.high_x / step) + 1)]


def _line(frame: Frame, one: Series) -> Html:
    path, last = "", None
    for spot in one.steps:
        x, y = frame.x(spot.x), frame.y(spot.y)
        path += f"M{x:.1f} {y:.1f}" if last is None else f"H{x:.1f}V{y:.1f}"
        last = spot
    style = f"stroke:var(--{one.tone})"
    return element("path", d=path or "M0 0", class_="best", style=style, stroke_dasharray=STROKES[one.dash] or "none")


def _spot(frame: Frame, one: Series, spot: Spot, radius: float) -> Html:
    is_step = radius > 4
    fill = f"var(--{one.tone})" if is_step else "var(--back)"
    circle = element(
        "circle", element("title", spot.text), cx=f"{frame.x(spot.x):.1f}", cy=f"{frame.y(spot.y):.1f}", r=radius,
        style=f"fill:{fill};stroke:var(--{one.tone})",
    )  # fmt: skip
    return element("a", circle, href=spot.href) if spot.href else circle


def _end(frame: Frame, one: Series) -> Html:
    last = one.steps[-1]
    return _text(frame.x(last.x) + 9, frame.y(last.y) + 4, one.label, "start", "")


def _level(frame: Frame, level: Level) -> Html:
    y = frame.y(level.value)
    note = _text(WIDTH - RIGHT - 4, y - 5, level.name, "end", "small")
    return join([_rule("level", LEFT, y, WIDTH - RIGHT, y), note])


def _rule(look: str, x1: float, y1: float, x2: float, y2: float) -> Html:
    return element("line", class_=look, x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}")


def _text(x: float, y: float, text: str, anchor: str, look: str) -> Html:
    return element("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, class_=look)


def _legend(series: Sequence[Series]) -> Html:
    rows = []
    for one in series:
        rule = element(
            "line", x1="0", y1="5", x2="34", y2="5", stroke_width="3", style=f"stroke:var(--{one.tone})",
            stroke_dasharray=STROKES[one.dash] or "none",
        )  # fmt: skip
        rows.append(element("li", element("svg", rule, viewBox="0 0 34 10", aria_hidden="true"), one.name))
    return element("ul", *rows, class_="legend")
