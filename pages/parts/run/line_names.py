"""Where the names of horizontal lines stand so that none covers another. Pure; knows no speed-ups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

TEXT_PX = 17  # a line of small text with a little air
POINT_PX = 5  # half a kernel's mark


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

# The first name stands at the right, the others at the left, where curves are low: the best kernel is at the right.
FIRST = (Place(False, True), Place(False, False), Place(True, True), Place(True, False))
OTHERS = (Place(True, True), Place(True, False), Place(False, True), Place(False, False))


def places(
    values: Sequence[float], scale: Scale, left: Sequence[float] = (), right: Sequence[float] = ()
) -> list[Place]:
    """A place for the name of each of a few lines: none covers another, as few points as can be (those at the `left`
    and at the `right` end of the chart) lie under one and, if that can be, no line runs through one.

    Of equally good choices, the one that moves the fewest names from where they would rather stand.
    """
    heights = [scale.px(value) for value in values]
    ends = {is_left: [scale.px(value) for value in found] for is_left, found in ((True, left), (False, right))}
    names = [(height, place) for height in heights for place in FIRST]
    under = {name: sum(-POINT_PX < point - _foot(name) < TEXT_PX + POINT_PX for point in ends[name[1].is_left])
             for name in names}  # fmt: skip
    wishes = [FIRST if i == 0 else OTHERS for i in range(len(heights))]

    def faults(chosen: Sequence[Place]) -> tuple[int, int, int, int]:
        named = list(zip(heights, chosen, strict=True))
        covered = sum(_meet(one, other) for one, other in combinations(named, 2))
        crossed = sum(0 < line - _foot(name) < TEXT_PX for name in named for line in heights)
        return (
            covered,
            sum(under[name] for name in named),
            crossed,
            sum(wish.index(place) for wish, place in zip(wishes, chosen, strict=True)),
        )

    best: tuple[Place, ...] = min(product(*wishes), key=faults)
    return list(best)


def _meet(one: Name, other: Name) -> bool:
    return one[1].is_left is other[1].is_left and abs(_foot(one) - _foot(other)) < TEXT_PX


def _foot(name: Name) -> float:
    height, place = name
    return height if place.is_above else height - TEXT_PX
