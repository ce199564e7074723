"""HTML of a report, escaped unless it was built here: one file without a script, told to ask for nothing. Sources and
their differences in it are coloured, and cut where they are too long. A curve is inline SVG: what a point is shows on
hover, and its link leads to its depth."""

from __future__ import annotations

import difflib
import html
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pages.parts import client, wording
from pages.parts.widgets import code, plot

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
DIFF_LINES = 600
SOURCE_LINES = 4_000
LOOKS = {"+": "add", "-": "del", "@": "hunk"}


class Html(str):
    """Text that is HTML already: built by `element`, every piece of it escaped on its way in."""

    __slots__ = ()


Part = str | Html


def escape(text: Part) -> Html:
    """The text as HTML; what is HTML already stays. Characters that no document may hold become a sign."""
    if isinstance(text, Html):
        return text
    printable = "".join(c if c in "\n\t" or (c.isprintable() or c == "\u00a0") else "\ufffd" for c in text)
    return Html(html.escape(printable))


def element(name: str, *children: Part, **attributes: str | float | bool) -> Html:
    """`<name …>children</name>`; attribute names end in `_` where Python keeps the word, `_` inside stands for `-`."""
    written = []
    for key, value in attributes.items():
        plain = key.rstrip("_").replace("_", "-")
        if value is True:
            written.append(f" {plain}")
        elif value not in (False, ""):
            written.append(f' {plain}="{html.escape(f"{value}")}"')
    return Html(f"<{name}{''.join(written)}>{join(children)}</{name}>")


def join(parts: Iterable[Part]) -> Html:
    """The parts one after the other."""
    return Html("".join(escape(part) for part in parts))


def table(name: str, headings: Sequence[str], rows: Iterable[Sequence[Part]], right: Sequence[int] = ()) -> Html:
    """A table that can be scrolled sideways; columns numbered in `right` hold figures."""

    def cells(tag: str, row: Sequence[Part]) -> Html:
        return join(element(tag, cell, class_="right" if i in right else "") for i, cell in enumerate(row))

    head = element("thead", element("tr", cells("th", headings)))
    body = element("tbody", *(element("tr", cells("td", row)) for row in rows))
    whole = element("table", element("caption", name), head, body)
    return element("div", whole, class_="scroll", tabindex="0", role="region", aria_label=name)


def facts(rows: Iterable[tuple[str, Part]]) -> Html:
    """Names with their values."""
    return element("dl", *(join([element("dt", name), element("dd", value)]) for name, value in rows), class_="facts")


def section(title: str, *children: Part, anchor: str = "") -> Html:
    """A part of the report under a heading of its own; `anchor` is what a link to it names."""
    heading = element("h2", title)
    return element("section", heading, *children, id=anchor) if anchor else element("section", heading, *children)


def folded(title: Part, *children: Part, is_open: bool = False) -> Html:
    """Something to open; needs no script."""
    return element("details", element("summary", title), *children, open=is_open)


def document(title: str, *children: Part) -> str:
    """The whole file."""
    head = join(
        [
            Html('<meta charset="utf-8">'),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
            Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Html('<meta name="color-scheme" content="light dark">'),
            element("title", title),
            Html(f"<style>{client.read('report/report.css')}</style>"),
        ]
    )
    foot = element("footer", f"Written by Tilewright on {wording.moment(time.time())}.")
    body = element("body", element("main", element("h1", title), *children, foot))
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>{body}</html>\n'


def difference(old: str, new: str) -> Html:
    """What changed, with three lines around each change; says how much was left out."""
    lines = list(difflib.unified_diff(old.split("\n"), new.split("\n"), lineterm="", n=3))[2:]
    if not lines:
        return element("p", "The sources are identical.", class_="quiet")
    shown = [element("span", line or " ", class_=LOOKS.get(line[:1], "")) for line in lines[:DIFF_LINES]]
    return join([element("pre", *shown, class_="diff", tabindex="0"), _left_out(lines, DIFF_LINES)])


def changed(old: str, new: str) -> tuple[int, int]:
    """Lines added and removed."""
    lines = list(difflib.unified_diff(old.split("\n"), new.split("\n"), lineterm="", n=0))[2:]
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def source(text: str) -> Html:
    """A whole kernel, coloured."""
    lines = code.lines(text)
    shown = "\n".join(code.as_html(line) for line in lines[:SOURCE_LINES])
    return join([element("pre", Html(shown), tabindex="0"), _left_out(lines, SOURCE_LINES)])


def _left_out(lines: Sequence[object], limit: int) -> Html:
    more = len(lines) - limit
    return element("p", f"{more:,} more lines are not shown.", class_="quiet") if more > 0 else Html("")


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


def draw_curve(
    name: str, x_title: str, series: Sequence[Series], levels: Sequence[Level], is_whole: bool = True
) -> Html:
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
