"""Models and tensors in double precision, the arithmetic that defines right. Knows no task."""

from __future__ import annotations

import copy

import torch
from torch import nn


def is_rounded(tensor: torch.Tensor) -> bool:
    """True for numbers that arithmetic rounds."""
    return tensor.dtype.is_floating_point or tensor.is_complex()


def wide_dtype(dtype: torch.dtype) -> str:
    """Name of the dtype in which an output of `dtype` is answered."""
    if dtype.is_complex:
        return "complex128"
    return "float64" if dtype.is_floating_point else str(dtype).removeprefix("torch.")


def widened(model: nn.Module) -> nn.Module:
    """A copy in float64. `double` leaves complex parameters as they are."""
    wide = copy.deepcopy(model).double()
    for parameter in wide.parameters():
        if parameter.is_complex():
            parameter.data = parameter.data.to(torch.complex128)
    return wide


def nudged(tensor: torch.Tensor, *, alternately: bool = False) -> torch.Tensor:
    """In double precision, every number up by half a unit in the last place of the dtype.

    So what cancels in a sum adds up.
    `alternately` turns every second element's direction: differences of neighbours move then, as roundings move them.
    """
    if not is_rounded(tensor):
        return tensor.clone()
    wide = tensor.to(getattr(torch, wide_dtype(tensor.dtype)))
    size = torch.complex(wide.real.abs(), wide.imag.abs()) if wide.is_complex() else wide.abs()
    step = size * (torch.finfo(tensor.dtype).eps / 2)
    if alternately:
        step.flatten()[1::2].neg_() if step.is_contiguous() else step.neg_()
    return wide + step
