"""Floating-point numbers of 8 bits: the formats that a task may hold, their exact numbers, and what is rounded to each.

PyTorch stores and converts them and computes with hardly any. Here they are compared by what they stand for: an output
is right when it is what a number near enough to the exact answer rounds to. Knows no task and decides nothing.
"""

from __future__ import annotations

import functools

import torch

from engine.evaluator.checks import tolerance

NAMES = tolerance.EIGHT_BITS
FORMATS: tuple[torch.dtype, ...] = tuple(getattr(torch, name) for name in NAMES)
"""Of four exponent and three mantissa bits without infinities; of five and two with; of eight exponent bits alone, the
scales of blocks."""
SCALES = torch.float8_e8m0fnu
_CODES = 256


def is_float8(tensor: torch.Tensor) -> bool:
    """Whether a tensor holds floating-point numbers of 8 bits."""
    return tensor.dtype in FORMATS


def exact(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers in float32, which holds each exactly; a tensor of any other dtype as it is."""
    return tensor.float() if is_float8(tensor) else tensor


def equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    """`torch.equal` of tensors of any dtype."""
    return a.dtype == b.dtype and torch.equal(exact(a), exact(b))


def within(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Numbers rounded to the format, those beyond its range to its largest; NaN stays."""
    limits = torch.finfo(dtype)
    return tensor.clamp(limits.tiny if dtype is SCALES else -limits.max, limits.max).to(dtype)


def distance(out: torch.Tensor, answer: torch.Tensor) -> torch.Tensor:
    """How far each answer lies from the numbers that round to an output, 0 among them; inf or NaN where the output is.

    Of an answer that is itself of 8 bits, how far apart the numbers are that round to either. float64, of one shape.
    """
    low, high = _bounds(out)
    if not is_float8(answer):
        wide = answer.to(torch.float64)
        return torch.maximum(low - wide, wide - high).clamp_(min=0.0)
    its_low, its_high = _bounds(answer)
    return torch.maximum(low - its_high, its_low - high).clamp_(min=0.0)


def _bounds(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The least and the largest number that round to each element."""
    bits = tensor.contiguous().view(torch.uint8).int()
    low, high = _table(tensor.dtype, str(tensor.device))
    return low[bits], high[bits]


@functools.cache
def _table(dtype: torch.dtype, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """By code: the middles between a number and its neighbours. Beyond the largest nothing but an infinity follows."""
    numbers = torch.arange(_CODES, dtype=torch.uint8).view(dtype).to(torch.float64)
    finite = torch.tensor(sorted(set(numbers[numbers.isfinite()].tolist())), dtype=torch.float64)
    middles = (finite[1:] + finite[:-1]) / 2
    beyond = torch.tensor([torch.inf if not numbers.isinf().any() else float(finite[-1] + (finite[-1] - middles[-1]))])
    lows = torch.cat([-beyond if finite[0] < 0 else torch.tensor([-torch.inf]), middles])
    highs = torch.cat([middles, beyond])
    at = torch.searchsorted(finite, numbers.nan_to_num(0.0, 0.0, 0.0))
    is_finite = numbers.isfinite()
    low, high = (torch.where(is_finite, ends[at], numbers) for ends in (lows, highs))
    return low.to(device), high.to(device)
