"""Input contents beyond the task's own: other distributions, and cheap changes that keep what makes an input valid."""

from __future__ import annotations

from enum import StrEnum

import torch

SPARSE = 0.01


class Style(StrEnum):
    """How the float inputs of a trial are distributed."""

    OWN = "own"
    NORMAL = "normal"
    WIDE = "wide"
    TINY = "tiny"
    CONSTANT = "constant rows"


def restyle(tensor: torch.Tensor, style: Style) -> torch.Tensor:
    """A tensor like the task's own in another distribution, or the same one where its structure forbids that.

    Integers, and floats that hold only whole numbers (targets, masks), stay. Zeros of a sparse pattern stay, a
    symmetric matrix stays symmetric: a kernel may rely on both.
    """
    if style is Style.OWN or not tensor.dtype.is_floating_point or tensor.numel() == 0 or _is_whole(tensor):
        return tensor
    fresh = _drawn(tensor, style)
    if tensor.dim() == 2 and tensor.shape[0] == tensor.shape[1] and torch.equal(tensor, tensor.T):
        fresh = (fresh + fresh.T) / 2
    zeros = tensor == 0
    return (
        torch.where(zeros, 0.0, fresh).to(tensor.dtype)
        if float(zeros.float().mean()) > SPARSE
        else fresh.to(tensor.dtype)
    )


def _drawn(tensor: torch.Tensor, style: Style) -> torch.Tensor:
    if style is Style.CONSTANT:
        rows = torch.randn((*tensor.shape[:-1], 1)) if tensor.dim() else torch.randn(())
        return rows.expand(tensor.shape).contiguous()
    factor = {Style.NORMAL: 1.0, Style.WIDE: 30.0, Style.TINY: 1e-3}[style]
    return torch.randn(tensor.shape) * factor


def _is_whole(tensor: torch.Tensor) -> bool:
    return bool((tensor == tensor.round()).all())
