"""The trials of a check: the distributions of inputs beyond the task's own, their seeds and their order.

A changed input keeps what makes it valid. Decides nothing and calls nothing.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import inf, nan

import torch

from engine.evaluation.poison import Poison

SPARSE = 0.01
SPRINKLED = 6
OUTLIERS = 64
GLANCE = 4096
HALF_HUGE = 1e4


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
    SPECIAL = "special values"


ONE_WAY = frozenset({Style.CONSTANT, Style.WHOLE, Style.ONE_HOT, Style.OUTLIERS})
"""Distributions under which all roundings of a sum may go the same way."""


def restyle(tensor: torch.Tensor, style: Style) -> torch.Tensor:
    """A tensor like the task's own in another distribution, or the same one where its structure forbids that.

    Integers, floats that hold only whole numbers (targets, masks) and rows that are probabilities stay. Zeros of a
    sparse pattern stay, a symmetric matrix stays symmetric, sorted rows stay sorted: a kernel may rely on each.
    """
    if style is Style.OWN or not tensor.dtype.is_floating_point or tensor.numel() == 0 or _is_whole(tensor):
        return tensor
    if style is Style.SPECIAL:
        return sprinkle(tensor)
    if _is_probability(tensor):
        return tensor
    if style is Style.OUTLIERS:
        return outliers(tensor)
    fresh = _DRAWN[style](tensor)
    if _is_sorted(tensor):
        fresh = fresh.sort(dim=-1).values
    if tensor.dim() == 2 and tensor.shape[0] == tensor.shape[1] and torch.equal(tensor, tensor.T):
        fresh = torch.triu(fresh) + torch.triu(fresh, 1).T
    if tensor.numel() - int(tensor.count_nonzero()) > SPARSE * tensor.numel():
        fresh = torch.where(tensor == 0, 0.0, fresh)
    return fresh.to(tensor.dtype)


def sprinkle(tensor: torch.Tensor) -> torch.Tensor:
    """The same contents with NaN, +Inf and -Inf at a few random places."""
    found = tensor.clone(memory_format=torch.contiguous_format)
    count = min(SPRINKLED, max(1, tensor.numel() // 4))
    places = torch.randperm(tensor.numel())[:count] if tensor.numel() < GLANCE else _places(tensor.numel(), count)
    order = torch.randperm(3)
    kinds = torch.tensor([nan, inf, -inf])[order[torch.arange(count) % 3]]
    found.view(-1)[places] = kinds.to(tensor.dtype)
    return found


def outliers(tensor: torch.Tensor) -> torch.Tensor:
    """The same contents with other magnitudes at a few random places: a kernel that samples its inputs misses them."""
    found = tensor.clone(memory_format=torch.contiguous_format)
    count = max(1, min(OUTLIERS, tensor.numel() // 64))
    sizes = 10.0 ** torch.empty(count).uniform_(0.3, 2.0) * torch.randn(count).sign()
    found.view(-1)[_places(tensor.numel(), count)] = sizes.to(tensor.dtype)
    return found


def _places(numel: int, count: int) -> torch.Tensor:
    """Random places without a permutation of millions; two may coincide."""
    return torch.randint(numel, (count,))


def _per_row(tensor: torch.Tensor) -> tuple[int, ...]:
    return (*tensor.shape[:-1], 1) if tensor.dim() else ()


def _normal(factor: float, offset: float = 0.0) -> Callable[[torch.Tensor], torch.Tensor]:
    def draw(tensor: torch.Tensor) -> torch.Tensor:
        drawn = torch.randn(tensor.shape)
        return drawn.mul_(factor).add_(offset) if (factor, offset) != (1.0, 0.0) else drawn

    return draw


def _huge(tensor: torch.Tensor) -> torch.Tensor:
    """Beyond float16's range where the task's dtype reaches further: operands kept in half would overflow."""
    return torch.randn(tensor.shape).mul_(HALF_HUGE if tensor.dtype is torch.float16 else 10 * HALF_HUGE)


def _constant(tensor: torch.Tensor) -> torch.Tensor:
    """Of one sign: where all elements of an answer are one and the same sum, it must not cancel by chance."""
    return torch.empty(_per_row(tensor)).uniform_(0.5, 2.0).expand(tensor.shape).contiguous()


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    """Zeros and ones, so few that a sum of products over the last dimension stays exact in the dtype."""
    exact_to = 2 / torch.finfo(tensor.dtype).eps
    length = tensor.shape[-1] if tensor.dim() else 1
    share = min(0.5, math.sqrt(exact_to / 2 / length))
    return (torch.rand(tensor.shape) < share).float()


def _mixed(tensor: torch.Tensor) -> torch.Tensor:
    """Each row with a magnitude of its own between 1e-3 and 1e3: no kernel can tell the probe by its size."""
    return torch.randn(tensor.shape).mul_(10.0 ** torch.empty(_per_row(tensor)).uniform_(-3.0, 3.0))


def _one_hot(tensor: torch.Tensor) -> torch.Tensor:
    if not tensor.dim():
        return torch.ones(())
    places = torch.randint(tensor.shape[-1], _per_row(tensor))
    return torch.zeros(tensor.shape).scatter_(-1, places, torch.empty(_per_row(tensor)).uniform_(0.5, 2.0))


_DRAWN: Mapping[Style, Callable[[torch.Tensor], torch.Tensor]] = {
    Style.NORMAL: _normal(1.0),
    Style.WIDE: _normal(30.0),
    Style.SHIFTED: _normal(30.0, 50.0),
    Style.HUGE: _huge,
    Style.TINY: _normal(1e-3),
    Style.CONSTANT: _constant,
    Style.WHOLE: _whole,
    Style.MIXED: _mixed,
    Style.ONE_HOT: _one_hot,
}


def _is_whole(tensor: torch.Tensor) -> bool:
    glance = tensor.flatten()[:GLANCE] if tensor.is_contiguous() else tensor
    return bool((glance == glance.round()).all()) and bool((tensor == tensor.round()).all())


def _is_probability(tensor: torch.Tensor) -> bool:
    """Rows that are not negative and sum to one, as a divergence wants them."""
    if not tensor.dim() or tensor.shape[-1] < 2:
        return False
    for rows in (tensor.reshape(-1, tensor.shape[-1])[:1], tensor):
        if not bool((rows.float().sum(-1) - 1).abs().max() < 1e-2) or bool((rows < 0).any()):
            return False
    return True


def _is_sorted(tensor: torch.Tensor) -> bool:
    if not tensor.dim() or tensor.shape[-1] < 2:
        return False
    rows = tensor.reshape(-1, tensor.shape[-1])
    return all(bool((part[:, 1:] >= part[:, :-1]).all()) for part in (rows[:1], rows))


@dataclass(frozen=True, slots=True)
class Trial:
    """One set of inputs. A repeat uses the seed of the trial it repeats. Essential trials are never left out."""

    name: str
    style: Style
    seed_name: str
    is_essential: bool = False


def _own(number: int, is_essential: bool = False) -> Trial:
    return Trial(f"own {number}", Style.OWN, f"own {number}", is_essential)


def _styled(style: Style, is_essential: bool = False) -> Trial:
    return Trial(str(style), style, str(style), is_essential)


FIRST = _own(1, is_essential=True)
REPEAT = Trial("own 1 again", Style.OWN, FIRST.seed_name, is_essential=True)
ESSENTIAL = (FIRST, _styled(Style.WIDE, is_essential=True), REPEAT, _styled(Style.NORMAL, is_essential=True))
FURTHER = (
    _own(2),
    _own(3),
    _styled(Style.SHIFTED),
    _styled(Style.HUGE),
    _styled(Style.TINY),
    _styled(Style.CONSTANT),
    _styled(Style.WHOLE),
    _styled(Style.MIXED),
    _styled(Style.ONE_HOT),
    _styled(Style.OUTLIERS),
)
PLAN = (*ESSENTIAL, *FURTHER)
SHORT_PLAN = (FIRST, _styled(Style.NORMAL, is_essential=True))
SPECIAL = _styled(Style.SPECIAL)


def ordered(plan: tuple[Trial, ...], seed: int) -> tuple[Trial, ...]:
    """Essential trials first and as written; the others in an order that only the secret seed tells."""
    further = [trial for trial in plan if not trial.is_essential]
    random.Random(f"{seed} order").shuffle(further)
    return (*(trial for trial in plan if trial.is_essential), *further)


def seed_of(seed: int, name: str) -> int:
    """The seed of one trial's inputs, from the secret seed of the whole check."""
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:7], "little")


def poison_of(number: int) -> Poison:
    """What lies in unwritten memory in a trial; the repeat of a trial meets another one than the trial did."""
    return (Poison.NAN, Poison.HIGH, Poison.LOW)[number % 3]
