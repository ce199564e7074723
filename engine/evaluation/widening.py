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


def nudged(tensor: torch.Tensor) -> torch.Tensor:
    """In double precision, positive numbers up and negative ones down by half a unit in the last place of the dtype."""
    if not is_rounded(tensor):
        return tensor.clone()
    wide = tensor.to(getattr(torch, wide_dtype(tensor.dtype)))
    size = torch.complex(wide.real.abs(), wide.imag.abs()) if wide.is_complex() else wide.abs()
    return wide + size * (torch.finfo(tensor.dtype).eps / 2)
