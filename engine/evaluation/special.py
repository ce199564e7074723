"""How a candidate treats NaN and infinities beside the reference. Pure functions; a policy decides what follows."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.evaluation import comparison
from engine.evaluation.comparison import Scale


@dataclass(frozen=True, slots=True)
class Difference:
    """Counts of elements, and of those unlike the reference, by what the reference gives in its own dtype."""

    total: int
    nan: int
    infinite: int
    lost_nan: int
    wrong_infinite: int
    wrong_finite: int

    @property
    def count(self) -> int:
        """All elements unlike the reference's."""
        return self.lost_nan + self.wrong_infinite + self.wrong_finite

    def __str__(self) -> str:
        return (
            f"{self.count} of {self.total} elements unlike the reference "
            f"({self.lost_nan} of {self.nan} NaN, {self.wrong_infinite} of {self.infinite} infinite, "
            f"{self.wrong_finite} of {self.total - self.nan - self.infinite} finite)"
        )


def difference(
    out: torch.Tensor, answer: torch.Tensor, own: torch.Tensor, scale: Scale, allowed: float
) -> tuple[Difference, torch.Tensor]:
    """The counts, and the mask of the elements that are unlike.

    NaN asks for NaN, an infinity for the same infinity, a finite value for one within the tolerance.
    """
    pair, mine = comparison.real(own), comparison.real(out)
    is_nan, is_infinite = torch.isnan(pair), torch.isinf(pair)
    lost = is_nan & ~torch.isnan(mine)
    other = is_infinite & (mine != pair)
    outside = comparison.wrong(mine, comparison.real(answer), pair, scale, allowed)
    off = outside & ~is_nan & ~is_infinite
    counts = [int(mask.sum()) for mask in (is_nan, is_infinite, lost, other, off)]
    return Difference(pair.numel(), *counts), lost | other | off
