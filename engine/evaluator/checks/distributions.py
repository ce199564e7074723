"""A task's inputs drawn from another distribution. A changed input keeps what makes it valid. Calls nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from math import inf, nan

import torch

from engine.evaluator.checks import float8
from engine.evaluator.checks.trials import DECADES, HUGE_IN_HALF, OUTLIER_DECADES, POSITIVE, SPREADS, Style

SPARSE = 0.01
SPRINKLED = 6
OUTLIERS = 64
SPARED = (-6.0, -1.0)
TOP = 0.1
STRETCHES = (2, 32)
LEAST_STRETCHED = 16
GLANCE = 4096


def restyle(tensor: torch.Tensor, style: Style) -> torch.Tensor:
    """A tensor like the task's own in another distribution, or the same one where its structure forbids that.

    Integers, floats that hold only whole numbers (targets, masks) and rows that are probabilities stay. Zeros of a
    sparse pattern stay, a symmetric matrix stays symmetric, sorted rows stay sorted: a kernel may rely on each. 8-bit
    floats get numbers of their format's range; the scales of blocks stay.
    """
    if float8.is_float8(tensor) and style not in (Style.OWN, Style.RECORDED):
        return _of_8_bits(tensor, style)
    if (
        style in (Style.OWN, Style.RECORDED)
        or not tensor.dtype.is_floating_point
        or tensor.numel() == 0
        or _is_whole(tensor)
    ):
        return tensor
    if style is Style.SPECIAL:
        return sprinkle(tensor)
    if _is_probability(tensor):
        return tensor
    fresh = _DRAWN[style](tensor)
    if _is_sorted(tensor):
        fresh = fresh.sort(dim=-1).values
    if tensor.dim() == 2 and tensor.shape[0] == tensor.shape[1] and torch.equal(tensor, tensor.T):
        fresh = torch.triu(fresh) + torch.triu(fresh, 1).T
    if tensor.numel() - int(tensor.count_nonzero()) > SPARSE * tensor.numel():
        fresh = torch.where(tensor == 0, 0.0, fresh)
    return fresh.to(tensor.dtype)


def _of_8_bits(tensor: torch.Tensor, style: Style) -> torch.Tensor:
    """Drawn in float32 and rounded once; what lies beyond the range becomes the largest number."""
    own, limits = tensor.float(), torch.finfo(tensor.dtype)
    if tensor.dtype is float8.SCALES or not tensor.numel() or _is_whole(own):
        return tensor
    if style is Style.MIXED:
        fresh = _mixed(own, max(-DECADES, math.log10(4 * limits.tiny)), min(DECADES, math.log10(limits.max / 4)))
    elif style in _OF_RANGE:
        fresh = torch.randn(tensor.shape) * _OF_RANGE[style](limits)
    else:
        fresh = restyle(own, style)
    if style is Style.SPECIAL and tensor.dtype is torch.float8_e5m2:  # has infinities
        return fresh.to(tensor.dtype)
    return tensor if fresh is own else float8.within(fresh, tensor.dtype)


_OF_RANGE: Mapping[Style, Callable[[torch.finfo], float]] = {
    Style.HUGE: lambda limits: limits.max / 2,  # one of twenty is beyond it
    Style.TINY: lambda limits: limits.tiny,  # two of three are denormal
}


def sprinkle(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's contents with NaN, +Inf and -Inf at a few random places."""
    sprinkled = tensor.clone(memory_format=torch.contiguous_format)
    count = min(SPRINKLED, max(1, tensor.numel() // 4))
    places = torch.randperm(tensor.numel())[:count] if tensor.numel() < GLANCE else _places(tensor.numel(), count)
    order = torch.randperm(3)
    kinds = torch.tensor([nan, inf, -inf])[order[torch.arange(count) % 3]]
    sprinkled.view(-1)[places] = kinds.to(tensor.dtype)
    return sprinkled


def outliers(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's contents with other magnitudes at a few random places: a kernel that samples its inputs misses them.

    None in the first part, from a 64th to a half of them all, so that one that looks at the beginning does too.
    """
    changed = tensor.clone(memory_format=torch.contiguous_format)
    count = max(1, min(OUTLIERS, tensor.numel() // 64))
    sizes = 10.0 ** torch.empty(count).uniform_(*OUTLIER_DECADES) * torch.randn(count).sign()
    spared = int(tensor.numel() * 2.0 ** float(torch.empty(()).uniform_(*SPARED)))
    changed.view(-1)[spared + _places(tensor.numel() - spared, count)] = sizes.to(tensor.dtype)
    return changed


def clustered(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's contents, their range kept, with the numbers of a stretch of each row above all others.

    Where the stretch begins is secret, and how long it is differs from row to row: one that hands on a few candidates
    of each tile loses the largest numbers, and one that looks back a few steps forgets what long gates hold. What
    counts as a row is the last dimension, of three or more also another that is long enough.
    """
    low, high = (float(limit) for limit in tensor.aminmax())
    if not math.isfinite(high - low):
        return tensor
    long = [axis for axis in range(tensor.dim()) if tensor.shape[axis] >= LEAST_STRETCHED and tensor.dim() > 2]
    along = long[int(torch.randint(len(long), ()))] if long else -1
    rows = tensor.movedim(along, -1) if tensor.dim() else tensor.view(1)
    length, each = rows.shape[-1], (*rows.shape[:-1], 1)
    starts = torch.randint(length, each, dtype=torch.int32)
    widths = length // torch.tensor(STRETCHES, dtype=torch.int32)[torch.randint(len(STRETCHES), each)]
    inside = (torch.arange(length, dtype=torch.int32) - starts).remainder_(length) < widths.clamp_(min=1)
    lifted, lowered = high - TOP * (high - rows), low + (1 - TOP) * (rows - low)
    return torch.where(inside, lifted, lowered).movedim(-1, along).reshape(tensor.shape).contiguous()


def _places(numel: int, count: int) -> torch.Tensor:
    """Random places without a permutation of millions; two may coincide."""
    return torch.randint(numel, (count,))


def _per_row(tensor: torch.Tensor) -> tuple[int, ...]:
    return (*tensor.shape[:-1], 1) if tensor.dim() else ()


def _normal(style: Style) -> Callable[[torch.Tensor], torch.Tensor]:
    factor, offset = SPREADS[style]

    def draw(tensor: torch.Tensor) -> torch.Tensor:
        drawn = torch.randn(tensor.shape)
        return drawn.mul_(factor).add_(offset) if (factor, offset) != (1.0, 0.0) else drawn

    return draw


def _huge(tensor: torch.Tensor) -> torch.Tensor:
    """Beyond float16's range where the task's dtype reaches further: operands kept in half would overflow."""
    return torch.randn(tensor.shape).mul_(HUGE_IN_HALF if tensor.dtype is torch.float16 else SPREADS[Style.HUGE][0])


def _constant(tensor: torch.Tensor) -> torch.Tensor:
    """Rows of one sign: where all elements of an answer are one and the same sum, it must not cancel by chance."""
    return torch.empty(_per_row(tensor)).uniform_(*POSITIVE).expand(tensor.shape).contiguous()


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    """Zeros and ones, so few that a sum of products over the last dimension stays exact in the dtype."""
    exact_to = 2 / torch.finfo(tensor.dtype).eps
    length = tensor.shape[-1] if tensor.dim() else 1
    share = min(0.5, math.sqrt(exact_to / 2 / length))
    return (torch.rand(tensor.shape) < share).float()


def _mixed(tensor: torch.Tensor, least: float = -DECADES, most: float = DECADES) -> torch.Tensor:
    """Each row with a magnitude of its own between 1e-3 and 1e3: no kernel can tell the probe by its size."""
    return torch.randn(tensor.shape).mul_(10.0 ** torch.empty(_per_row(tensor)).uniform_(least, most))


def _one_hot(tensor: torch.Tensor) -> torch.Tensor:
    if not tensor.dim():
        return torch.ones(())
    places = torch.randint(tensor.shape[-1], _per_row(tensor))
    return torch.zeros(tensor.shape).scatter_(-1, places, torch.empty(_per_row(tensor)).uniform_(*POSITIVE))


_DRAWN: Mapping[Style, Callable[[torch.Tensor], torch.Tensor]] = {
    Style.NORMAL: _normal(Style.NORMAL),
    Style.WIDE: _normal(Style.WIDE),
    Style.SHIFTED: _normal(Style.SHIFTED),
    Style.HUGE: _huge,
    Style.TINY: _normal(Style.TINY),
    Style.CONSTANT: _constant,
    Style.WHOLE: _whole,
    Style.MIXED: _mixed,
    Style.ONE_HOT: _one_hot,
    Style.OUTLIERS: outliers,
    Style.CLUSTERED: clustered,
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
