"""Lines, bands and flags around the points of the speed-up curve: the phases of a run, the reference lines with names
that cover neither each other nor a point, and where a person steered. Pure."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from pages.parts import wording
from pages.parts.status import alternatives
from storage.index.queries import BaselineRow, ExposureRow, PointRow, SteeringMark
from storage.results.baselines import COMPILED
from storage.run.exposure import Exposure
from storage.run.method_words import PLAIN, MethodWords
from storage.run.settings import Switch
from storage.run.steering.verbs import VERBS, CommandKind

Shape = dict[str, Any]
# The parts of the chart's height: failures at the foot, over them the names of flags, phases at the top.
LANE_TOP, FLAGS_TOP, RIBBON = 0.11, 0.175, 0.945
LANE: Shape = {
    "type": "rect", "xref": "paper", "x0": 0, "x1": 1, "yref": "paper", "y0": 0, "y1": LANE_TOP, "layer": "below",
    "fillcolor": "@gray-background-color/45", "line": {"width": 0},
}  # fmt: skip
GRAY, GRAY_TEXT = "@gray-color", "@gray-text-color"
STRONG = 2.2  # the width of the best alternative's line
NOISY = 0.05  # a relative noise that belongs beside the number
UNDER = "@background-color/75"  # behind the best kernel's number
PAPER = "@background-color"  # behind the name of a line: no other line strikes through it
NAME_SHIFT, NAME_LIFT = 6, 2  # pixels from the edge of the chart, beside which latencies stand, and from its line
ROOM_BELOW, ROOM_ABOVE = 1.25, 1.35
HEIGHT_PX = 230  # of the axis in the lowest chart that the page draws
TEXT_PX = 17  # a line of small text with a little air
POINT_PX = 5  # half a kernel's mark
NAME_WIDTH = 0.35  # of the chart's: what a line's name takes up at most
LABEL_WIDTH = 0.36  # of a phone's chart: what the best kernel's speed-up with its noise takes up
MIDDLE = 0.1  # of the chart's width beside its middle: from there a centred label reaches into both halves
LABEL_LIFT_PX, LABEL_PX = 11, 20  # over its point; its height


@dataclass(frozen=True, slots=True)
class Line:
    """A speed-up drawn across the whole chart, with its name in several lengths, the longest first: none where it
    shares that of another line. `about` is told behind the pointer."""

    value: float
    texts: tuple[str, ...]
    colour: str
    dash: str
    about: str = ""
    width: float = 1.4
    text_colour: str = ""


def reference_lines(
    limit: float | None,
    target: float | None,
    values: Sequence[float],
    is_log: bool,
    baselines: Sequence[BaselineRow] = (),
    ends: tuple[Sequence[float], Sequence[float]] = ((), ()),
    limit_ms: float | None = None,
    label: Label | None = None,
) -> tuple[list[Shape], list[Shape]]:
    """Baselines, target and hardware limit beside the speed-ups shown; `ends` are those at the left and at the right,
    `limit_ms` is what the limit is called by, `label` where the best kernel's speed-up is written.

    A line far from all points is named at the edge and not drawn to scale.
    """
    top, shown = max(values, default=1.0), [1.0, *values]
    timed = alternatives.known(baselines)
    near, far = [_eager(timed)], list[Line]()
    close = [row for row in timed if 0.5 * min(shown) <= (row.speedup or 0.0) <= 3 * max(shown)]
    others = [line for line in (_line_of(target, "target", "@violet-color"), _limit(limit, limit_ms)) if line]
    for line in others:
        (near if 0.5 * top <= line.value <= 3 * top else far).append(line)
    heights = [*shown, *(line.value for line in near), *(row.speedup or 1.0 for row in close)]
    scale = Scale(min(heights) / ROOM_BELOW, max(heights) * ROOM_ABOVE, HEIGHT_PX, is_log)
    near[1:1] = _lines(alternatives.together(close, scale.px, TEXT_PX / 2), timed)
    far[:0] = _lines(alternatives.together([row for row in timed if row not in close]), timed)
    named = [line for line in near if line.texts]
    unnamed = [line.value for line in near if not line.texts]
    names = places([line.value for line in named], scale, *ends, label, unnamed)
    notes = [_line_note(line, place) for line, place in zip(named, names, strict=True)]
    edge = [line for line in far if line.texts]
    return [_line(line) for line in near], notes + [_edge_note(line, top, i, label) for i, line in enumerate(edge)]


def _eager(timed: Sequence[BaselineRow]) -> Line:
    """Eager's line; where all others are slower, it is the best alternative."""
    text, about = "eager baseline 1×", alternatives.EAGER_IS_BEST
    if not (timed and alternatives.is_eager_best(timed[0])):
        return Line(1.0, (text,), GRAY, "dash", text_colour=GRAY_TEXT)
    texts = f"{text} (fastest alternative)", text
    return Line(1.0, texts, GRAY_TEXT, "dash", wording.capital(about), STRONG)


def _lines(groups: Sequence[Sequence[BaselineRow]], timed: Sequence[BaselineRow]) -> Iterator[Line]:
    """A line for each baseline; those close together share a name, and the best alternative stands out."""
    for group in groups:
        about = "<br>".join(f"{_escaped(row.name)} {wording.speedup(row.speedup)}" for row in group)
        for row in group:
            is_best = row is timed[0] and not alternatives.is_eager_best(row)
            colour, width = ("@yellow-text-color", STRONG) if is_best else (GRAY, 1.4)
            names = _names(group) if row is group[0] else ()
            yield Line(row.speedup or 1.0, names, colour, "dot", about, width, "" if is_best else GRAY_TEXT)


def _names(group: Sequence[BaselineRow]) -> tuple[str, ...]:
    """The name that the lines of a group share, in every length, the longest first."""
    names = [row.name for row in group]
    short = [wording.cut(name.removeprefix(f"{COMPILED} "), 16) for name in names]
    lengths = [", ".join(names), ", ".join(short), *([f"{short[0]}, {len(group) - 1} more"] if len(group) > 1 else [])]
    return tuple(dict.fromkeys(_escaped(alternatives.label(group, text)) for text in lengths))


@dataclass(frozen=True, slots=True)
class Label:
    """Where the best kernel's speed-up is written: over its point, which stands at `at` (0..1) of the chart's width. On
    a phone it is a third as wide as the chart: at an end it goes inwards, and in the middle away from names at the
    chart's upper edge, which stand in the half without the point."""

    speedup: float
    at: float

    @property
    def is_left(self) -> bool:
        """Whether the point is in the chart's left half."""
        return self.at < 0.5

    @property
    def anchor(self) -> str:
        """Which part of the text stands over the point: left, center or right."""
        if self.at > 1 - LABEL_WIDTH / 2 or 0.5 - MIDDLE < self.at < 0.5:
            return "right"
        return "left" if self.at < LABEL_WIDTH / 2 or 0.5 <= self.at < 0.5 + MIDDLE else "center"

    def reaches(self, is_left: bool) -> bool:
        """Whether it comes where names of lines stand at this end."""
        begins = self.at - {"left": 0.0, "center": LABEL_WIDTH / 2, "right": LABEL_WIDTH}[self.anchor]
        return begins < NAME_WIDTH if is_left else begins + LABEL_WIDTH > 1 - NAME_WIDTH


def best_label(p: PointRow, label: Label) -> Shape:
    """The number that everybody looks for, over its point."""
    shift = {"left": -POINT_PX, "center": 0, "right": POINT_PX}[label.anchor]
    return {
        "xref": "x", "x": p.x, "yref": "y", "y": label.speedup, "text": f"<b>{_measured(p)}</b>", "showarrow": False,
        "xanchor": label.anchor, "yanchor": "bottom", "xshift": shift, "yshift": LABEL_LIFT_PX, "borderpad": 0,
        "bgcolor": UNDER, "font": {"size": 15, "color": "@green-text-color"},
    }  # fmt: skip


def _measured(p: PointRow) -> str:
    """With its interval where that is wide; the interval alone where that is all that is known."""
    is_noisy = (p.noise or 0) > NOISY
    return wording.measured(p.speedup, p.noise, p.low, p.high) if is_noisy else wording.ratio(p)


def phase_bands(phases: Sequence[Phase]) -> list[Shape]:
    """A ribbon over the chart that names the phases, and a tint under the profile-guided ones.

    Each name comes in several lengths: the browser, which knows how wide the chart is, takes the longest that fits.
    """
    shapes: list[Shape] = []
    for i, phase in enumerate(phases):
        tone = "violet" if phase.is_profile_guided else "blue"
        x0, x1 = phase.first - 0.7 if phase.first else -0.75, phase.last + 0.3
        goes_on = i > 0 and phases[i - 1].name == phase.name
        label = {
            "texts": [] if goes_on else _lengths(phase),
            "textposition": "middle center",
            "font": {"size": 11, "color": f"@{tone}-text-color"},
        }
        across = {"type": "rect", "xref": "x", "x0": x0, "x1": x1, "yref": "paper", "line": {"width": 0}}
        faint = 45 if phase.is_planned else 100
        shapes.append(across | {"y0": RIBBON, "y1": 1, "layer": "below", "label": label,
                                "fillcolor": f"@{tone}-background-color/{faint}"})  # fmt: skip
        if phase.is_profile_guided and not phase.is_planned:
            shapes.append(across | {"y0": LANE_TOP, "y1": RIBBON, "layer": "below",
                                    "fillcolor": "@violet-background-color/45"})  # fmt: skip
    return shapes


def _lengths(phase: Phase) -> list[str]:
    """The phase's name, the longest first."""
    if phase.why:
        return [phase.name, f"no profile: {phase.why}", phase.why, "no profiles", ""]
    if phase.patience is not None:
        return [phase.name, f"profiles after {phase.patience} without a gain", "adaptive", ""]
    short = "with profiles" if phase.is_profile_guided else "no profiles"
    planned = [f"{phase.name}, planned"] if phase.is_planned else []
    return [*planned, phase.name, short, "profiles" if phase.is_profile_guided else "", ""]


# On a chart a verb stands alone, without what it was asked for, but for a switch and what it was turned to.
FLAG_NAME = {CommandKind.ANSWER: "reply by hand"}
HANDED_IN_NAME = {CommandKind.ANSWER: "reply handed in"}
SWITCHES = (CommandKind.COLLECT, CommandKind.EXPOSE)


def steering_flags(
    steering_marks: Sequence[SteeringMark], is_by_hand: bool = False, is_handed_in: bool = False
) -> tuple[list[Shape], list[Shape]]:
    """One flag per place where a person steered, before the kernels that came after it. With the verbs where the
    browser finds room, else behind the pointer alone. In a run whose replies are all given by hand, a reply is no
    steering. `is_handed_in`: a language model wrote the replies that were."""
    names = HANDED_IN_NAME if is_handed_in else FLAG_NAME
    ordinary = (CommandKind.PAUSE, CommandKind.RESUME, *([CommandKind.ANSWER] if is_by_hand else []))
    by_place: dict[float, list[SteeringMark]] = {}
    for mark in steering_marks:
        if mark.kind not in ordinary:
            by_place.setdefault(mark.depth - 0.72 if mark.x is None else mark.x, []).append(mark)
    shapes, notes = [], []
    for x, marks in by_place.items():
        verbs = ", ".join(dict.fromkeys(_flag_name(mark, names) for mark in marks))
        shapes.append({"type": "line", "xref": "x", "x0": x, "x1": x,
                       "yref": "paper", "y0": 0, "y1": RIBBON,
                       "line": {"color": "@orange-color", "width": 1.2, "dash": "dot"}})  # fmt: skip
        notes.append({"xref": "x", "x": x, "yref": "paper", "y": LANE_TOP, "texts": [f"⚑ {verbs}", "⚑"],
                      "hovertext": verbs, "showarrow": False, "xanchor": "left", "yanchor": "bottom", "xshift": 3,
                      "borderpad": 0, "font": {"size": 11, "color": "@orange-text-color"}})  # fmt: skip
    return shapes, notes


def _flag_name(mark: SteeringMark, names: Mapping[CommandKind, str]) -> str:
    name = names.get(mark.kind, VERBS[mark.kind].name)
    return f"{name} {mark.argument.strip()}" if mark.kind in SWITCHES else name


def _line_of(value: float | None, name: str, colour: str, dash: str = "dashdot") -> Line | None:
    if value is None:
        return None
    return Line(value, (f"{name} {wording.speedup(value)}",), colour, dash)


def _escaped(text: str) -> str:
    return html.escape(text, quote=False)


def _limit(limit: float | None, limit_ms: float | None) -> Line | None:
    """Called by its latency, which stays; as a speed-up it would move, since eager is timed anew with every kernel."""
    line = _line_of(limit, "hardware limit", "@red-color")
    if line is None or limit_ms is None:
        return line
    texts = (f"hardware limit {wording.latency(limit_ms)}",)
    return replace(line, texts=texts, about="The theoretical minimum latency of this task on this device")


def _line(line: Line) -> Shape:
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": line.value, "y1": line.value,
            "layer": "below", "line": {"color": line.colour, "width": line.width, "dash": line.dash}}  # fmt: skip


def _line_note(line: Line, place: Place) -> Shape:
    return _named(line) | {"xref": "paper", "x": 0 if place.is_left else 1, "yref": "y", "y": line.value,
                           "xanchor": "left" if place.is_left else "right", "xshift": _inwards(place.is_left),
                           "yshift": NAME_LIFT if place.is_above else -NAME_LIFT,
                           "yanchor": "bottom" if place.is_above else "top", "borderpad": 0}  # fmt: skip


def _inwards(is_left: bool) -> int:
    return NAME_SHIFT if is_left else -NAME_SHIFT


def _named(line: Line, arrow: str = "") -> Shape:
    """The name in as many words as there is room for."""
    words: Shape = {"text": line.texts[0] + arrow}
    if len(line.texts) > 1:
        words = {"texts": [text + arrow for text in line.texts], "room": NAME_WIDTH, "hovertext": line.about}
    return words | {
        "showarrow": False,
        "bgcolor": PAPER,
        "font": {"size": 11, "color": line.text_colour or line.colour},
    }


def _edge_note(line: Line, top: float, number: int, label: Label | None) -> Shape:
    """Inside the chart, under the ribbon, in the half without the best kernel: over it stands the legend."""
    is_left = label is not None and not label.is_left
    return _named(line, " ↑" if line.value > top else " ↓") | {
        "xref": "paper", "x": 0 if is_left else 1, "yref": "paper", "y": RIBBON, "yshift": -2 - number * TEXT_PX,
        "xanchor": "left" if is_left else "right", "xshift": _inwards(is_left), "yanchor": "top",
    }  # fmt: skip


def in_log_units(notes: Sequence[Shape]) -> list[Shape]:
    """Plotly takes shapes on a log axis as they are, but annotations as powers of ten."""
    return [n | {"y": math.log10(n["y"])} if n["yref"] == "y" else n for n in notes]


@dataclass(frozen=True, slots=True)
class Phase:
    """Step indexes `first` to `last`; a planned phase has not been reached, and follows from what is set now. With a
    `patience` only those that follow so many without a gain will see a profile. `why` there was none to show, where
    one was to be shown."""

    first: int
    last: int
    is_profile_guided: bool
    is_planned: bool = False
    patience: int | None = None
    words: MethodWords = PLAIN
    why: str = ""

    @property
    def name(self) -> str:
        """What the phase is called on the curve."""
        if self.why:
            return f"the model sees no profile: {self.why}"
        if self.patience is not None:
            return f"profiles after {self.words.counted(self.patience)} without a gain"
        return "the model sees profiles" if self.is_profile_guided else "the model sees no profiles"


def phases(
    seen: Sequence[ExposureRow],
    switch: Switch,
    promised: Exposure | None,
    last: int,
    words: MethodWords = PLAIN,
    whys: Mapping[int, str] = MappingProxyType({}),
) -> list[Phase]:
    """Phases reached, from what the prompts showed; then those that the switch or the settings promise up to `last`.

    A switch on auto promises only what the run's own options say. `whys`: by depth, why there was no profile to show.
    """
    reached = [phase for row in seen for phase in _reached(row, whys)]
    ahead = reached[-1].last + 1 if reached else 0
    if ahead <= last:
        reached += _promised(ahead, last, switch, promised, words)
    return reached


def _reached(row: ExposureRow, whys: Mapping[int, str]) -> Iterator[Phase]:
    """A stretch, in as many parts as there are reasons for what was not shown."""
    if row.is_exposed or not whys:
        yield Phase(row.first, row.last, row.is_exposed)
        return
    for why, depths in itertools.groupby(range(row.first, row.last + 1), key=lambda depth: whys.get(depth, "")):
        first, *others = depths
        yield Phase(first, [first, *others][-1], False, why=why)


def _promised(ahead: int, last: int, switch: Switch, promised: Exposure | None, words: MethodWords) -> list[Phase]:
    if switch is not Switch.AUTO:
        return [Phase(ahead, last, switch is Switch.ON, is_planned=True)]
    if promised is None:
        return []
    turn = min(max(ahead, promised.first), last + 1)
    later = Phase(turn, last, promised.patience is None, is_planned=True, patience=promised.patience, words=words)
    planned = [Phase(ahead, turn - 1, False, is_planned=True), later]
    return [phase for phase in planned if phase.first <= phase.last]


@dataclass(frozen=True, slots=True)
class Scale:
    """Roughly where a value stands on the drawn axis: the browser settles the range, from much the same values."""

    low: float
    high: float
    height_px: float
    is_log: bool

    def px(self, value: float) -> float:
        """Pixels above the foot of the axis."""
        if self.is_log:
            return self.height_px * math.log(value / self.low) / math.log(self.high / self.low)
        return self.height_px * (value - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class Place:
    """Beside which end of its line a name stands, and on which side of it."""

    is_left: bool
    is_above: bool


Name = tuple[float, Place]  # the height of its line, and where it stands there
Faults = tuple[int, int, int, int]

# The first name stands at the right, the others at the left, where curves are low: the best kernel is at the right.
FIRST = (Place(False, True), Place(False, False), Place(True, True), Place(True, False))
OTHERS = (Place(True, True), Place(True, False), Place(False, True), Place(False, False))


def places(
    values: Sequence[float],
    scale: Scale,
    left: Sequence[float] = (),
    right: Sequence[float] = (),
    label: Label | None = None,
    unnamed: Sequence[float] = (),
) -> list[Place]:
    """A place for the name of each of a few lines: none covers another or the best kernel's `label`, as few points as
    can be (those at the `left` and at the `right` end of the chart) lie under one and, if that can be, no line runs
    through one.

    Of equally good choices, the one that moves the fewest names from where they would rather stand. `unnamed` lines
    only run through names.
    """
    heights = [scale.px(value) for value in values]
    drawn = [*heights, *(scale.px(value) for value in unnamed)]
    ends = {is_left: [scale.px(value) for value in side] for is_left, side in ((True, left), (False, right))}

    def faults(name: Name, before: Sequence[Name], wish: int) -> Faults:
        """What is wrong with a name, the worst first: covered, points under it, lines through it, out of its place."""
        foot = _foot(name)
        return (
            sum(_meet(name, other) for other in before) + bool(label and _is_under(name, label, scale)),
            sum(-POINT_PX < point - foot < TEXT_PX + POINT_PX for point in ends[name[1].is_left]),
            sum(0 < line - foot < TEXT_PX for line in drawn),
            wish,
        )

    best: tuple[Faults, list[Place]] | None = None

    def choose(before: Sequence[Name], so_far: Faults) -> None:
        """Every choice for the names from here on that can still be better than the best one."""
        nonlocal best
        if best and so_far >= best[0]:
            return
        if len(before) == len(heights):
            best = so_far, [place for _, place in before]
            return
        for wish, place in enumerate(OTHERS if before else FIRST):
            name = heights[len(before)], place
            here = faults(name, before, wish)
            choose(
                [*before, name], (so_far[0] + here[0], so_far[1] + here[1], so_far[2] + here[2], so_far[3] + here[3])
            )

    choose([], (0, 0, 0, 0))
    return best[1] if best else []


def _meet(name: Name, other: Name) -> bool:
    return name[1].is_left is other[1].is_left and abs(_foot(name) - _foot(other)) < TEXT_PX


def _is_under(name: Name, label: Label, scale: Scale) -> bool:
    above = _foot(name) - scale.px(label.speedup) - LABEL_LIFT_PX
    return label.reaches(name[1].is_left) and -TEXT_PX < above < LABEL_PX


def _foot(name: Name) -> float:
    height, place = name
    return height if place.is_above else height - TEXT_PX
