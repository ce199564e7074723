"""What unwritten memory holds during a check, so that an element nobody wrote cannot be right. Knows no task."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import nan

import torch

from engine.evaluator.checks import float8


class Poison(StrEnum):
    """NaN shows what was read or left; a maximum or minimum with NaN may drop it, hence a high and a low number too."""

    NAN = "nan"
    HIGH = "high"
    LOW = "low"


def poison_of(number: int) -> Poison:
    """What lies in unwritten memory in a trial; the repeat of a trial meets another one than the trial did."""
    return (Poison.NAN, Poison.HIGH, Poison.LOW)[number % 3]


def fill(tensors: Sequence[torch.Tensor], poison: Poison) -> None:
    """Fill with what no honest result contains."""
    for tensor in tensors:
        tensor.fill_(value(tensor.dtype, poison))


def value(dtype: torch.dtype, poison: Poison) -> float | bool:
    """The number that stands for unwritten memory in a dtype."""
    if dtype is torch.bool:
        return poison is Poison.HIGH
    if not (dtype.is_floating_point or dtype.is_complex):
        limits = torch.iinfo(dtype)
        return limits.max - 77 if poison is Poison.HIGH else limits.min + 77
    number = torch.finfo(dtype).max / 8
    return {Poison.NAN: nan, Poison.HIGH: number, Poison.LOW: -number}[poison]


def count(tensor: torch.Tensor, poison: Poison) -> int:
    """How many elements still hold it. NaN may also have been computed from it, and of so few numbers as a byte or a
    bit tells apart any may be right."""
    if poison is Poison.NAN and (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
        return int(torch.isnan(tensor).sum())
    return 0 if tensor.dtype in (torch.bool, *float8.FORMATS) else int((tensor == value(tensor.dtype, poison)).sum())
