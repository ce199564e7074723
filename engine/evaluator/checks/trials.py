"""The trials of a check: the distributions of inputs beyond the task's own, their seeds and their order.

Decides nothing, draws nothing and knows no tensor: what each distribution is stands in words, for whoever must meet it.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Style(StrEnum):
    """How the float inputs of a trial are distributed."""

    OWN = "own"
    NORMAL = "normal"
    WIDE = "wide"
    SHIFTED = "shifted"
    HUGE = "huge"
    TINY = "tiny"
    CONSTANT = "constant rows"
    WHOLE = "whole numbers"
    MIXED = "mixed magnitudes"
    ONE_HOT = "one-hot rows"
    OUTLIERS = "outliers"
    CLUSTERED = "clustered"
    SPECIAL = "special values"
    RECORDED = "recorded"


ONE_WAY = frozenset({Style.CONSTANT, Style.WHOLE, Style.ONE_HOT, Style.OUTLIERS})
"""Distributions under which all roundings of a sum may go the same way."""
SPREADS: Mapping[Style, tuple[float, float]] = {
    Style.NORMAL: (1.0, 0.0),
    Style.WIDE: (30.0, 0.0),
    Style.SHIFTED: (30.0, 50.0),
    Style.HUGE: (1e5, 0.0),
    Style.TINY: (1e-3, 0.0),
}
"""Standard deviation and mean of normally distributed numbers."""
HUGE_IN_HALF = 1e4
POSITIVE = (0.5, 2.0)
DECADES = 3.0
OUTLIER_DECADES = (0.3, 2.0)
IN_WORDS: Mapping[Style, str] = {
    Style.OWN: "what the reference's own `get_inputs` draws",
    **{
        style: f"normal with deviation {deviation:g}" + (f" around {mean:g}" if mean else "")
        for style, (deviation, mean) in SPREADS.items()
    },
    Style.CONSTANT: "rows of one number each",
    Style.WHOLE: "zeros and ones",
    Style.MIXED: f"rows whose magnitudes differ, from {10**-DECADES:g} to {10**DECADES:g}",
    Style.ONE_HOT: "rows with a single number that is not zero",
    Style.OUTLIERS: f"the reference's own with a few numbers of up to {10 ** OUTLIER_DECADES[1]:g} after its beginning",
    Style.CLUSTERED: "the reference's own with the largest numbers of a row side by side",
    Style.RECORDED: "what the network gave this module, with its own weights",
    Style.SPECIAL: "the reference's own with NaN and infinities at a few places",
}


@dataclass(frozen=True, slots=True)
class Trial:
    """One set of inputs. A repeat uses the seed of the trial it repeats. Essential trials are never left out.

    `weights` says which values the module's weights have: 0 those of the constructor, else a draw of that number.
    With `is_strided` inputs lie in memory otherwise than `get_inputs` lays them out. `recorded` counts the calls of the
    task's recording from 1; its weights stand beside them.
    """

    name: str
    style: Style
    seed_name: str
    is_essential: bool = False
    weights: int = 0
    is_strided: bool = False
    recorded: int = 0


def _own(number: int, is_essential: bool = False, weights: int = 0) -> Trial:
    return Trial(f"own {number}", Style.OWN, f"own {number}", is_essential, weights)


def _styled(style: Style, is_essential: bool = False, weights: int = 0) -> Trial:
    return Trial(str(style), style, str(style), is_essential, weights)


def of_gradients(style: Style) -> Style:
    """How the gradients that a backward pass is given are distributed in a trial of that style.

    Where the inputs' rows have one number each, or one that is not zero, gradients of that kind on top make the
    gradients of a normalisation cancel to nothing, and rounding alone is left to compare.
    """
    return Style.NORMAL if style in (Style.CONSTANT, Style.ONE_HOT) else style


FIRST = _own(1, is_essential=True)
REPEAT = Trial("own 1 again", Style.OWN, FIRST.seed_name, is_essential=True)
ESSENTIAL = (
    FIRST,
    _styled(Style.WIDE, is_essential=True),
    REPEAT,
    _styled(Style.NORMAL, is_essential=True, weights=1),
    _own(2, is_essential=True, weights=1),
)
# Sums of zeros and ones are exact only with weights that are whole, as constructed ones often are.
FURTHER = (
    _own(3, weights=2),
    _styled(Style.SHIFTED, weights=2),
    _styled(Style.HUGE),
    _styled(Style.TINY, weights=2),
    _styled(Style.CONSTANT),
    _styled(Style.WHOLE),
    _styled(Style.MIXED, weights=2),
    _styled(Style.ONE_HOT, weights=2),
    _styled(Style.OUTLIERS),
    _styled(Style.CLUSTERED),
)
PLAN = (*ESSENTIAL, *FURTHER)
SHORT_PLAN = (FIRST, _styled(Style.NORMAL, is_essential=True, weights=1))
STRIDED = Trial("other strides", Style.OWN, "other strides", is_essential=True, is_strided=True)
SPECIAL = _styled(Style.SPECIAL)


def recorded_trials(count: int) -> tuple[Trial, ...]:
    """Trials of what a network gave the module in so many calls."""
    return tuple(
        Trial(f"{Style.RECORDED} {number}", Style.RECORDED, f"{Style.RECORDED} {number}", True, recorded=number)
        for number in range(1, count + 1)
    )


def ordered(plan: tuple[Trial, ...], seed: int) -> tuple[Trial, ...]:
    """Essential trials first and as written; the others in an order that only the secret seed tells."""
    further = [trial for trial in plan if not trial.is_essential]
    choose = random.Random(f"{seed} order")
    choose.shuffle(further)
    # Those with the same weights together: loading them costs time.
    first = choose.choice([trial.weights for trial in further] or [0])
    further.sort(key=lambda trial: trial.weights != first)
    return (*(trial for trial in plan if trial.is_essential), *further)


def seed_of(seed: int, name: str) -> int:
    """The seed of one trial's inputs, from the secret seed of the whole check."""
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:7], "little")
