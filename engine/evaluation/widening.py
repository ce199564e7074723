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
    """Every element in double precision, moved by up to half a unit in the last place of its own dtype."""
    if not is_rounded(tensor):
        return tensor.clone()
    wide = tensor.to(getattr(torch, wide_dtype(tensor.dtype)))
    half_unit = torch.finfo(tensor.dtype).eps / 2
    return wide * (1 + half_unit * (2 * torch.rand(tensor.shape, dtype=torch.float64) - 1))
