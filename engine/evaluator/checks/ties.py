"""Indices that PyTorch leaves open: of equal values any may come first. Knows no trial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from engine.evaluator.checks import float8


def are_of_equal_values(out: torch.Tensor, reference: torch.Tensor, inputs: Sequence[torch.Tensor]) -> bool:
    """Whether two outputs are indices, along a dimension of an input, of equal values: `topk`, `sort` and `argmax` of
    it may give either. Those of one row are different where the reference's are.
    """
    if reference.dtype is not torch.int64 or out.shape != reference.shape or not reference.numel():
        return False
    return any(_are_equal(given, axis, *pair) for given, axis, *pair in _readings(out, reference, inputs))


def _readings(
    out: torch.Tensor, reference: torch.Tensor, inputs: Sequence[torch.Tensor]
) -> Iterator[tuple[torch.Tensor, int, torch.Tensor, torch.Tensor]]:
    """Each input and dimension along which both may be indices, with the dimension that a reduction drops put back."""
    for given in inputs:
        for axis in range(given.dim()):
            rest = [size for number, size in enumerate(given.shape) if number != axis]
            if reference.dim() == given.dim() and [*reference.shape[:axis], *reference.shape[axis + 1 :]] == rest:
                yield given, axis, out, reference
            elif list(reference.shape) == rest:
                yield given, axis, out.unsqueeze(axis), reference.unsqueeze(axis)


def _are_equal(given: torch.Tensor, axis: int, out: torch.Tensor, reference: torch.Tensor) -> bool:
    size = given.shape[axis]
    if (
        out.shape[axis] > size
        or bool(((out < 0) | (out >= size)).any())
        or bool(((reference < 0) | (reference >= size)).any())
    ):
        return False
    given = float8.exact(given)
    chosen, right = given.gather(axis, out), given.gather(axis, reference)
    if not torch.equal(chosen.nan_to_num(), right.nan_to_num()):
        return False
    return _repeats(out, axis) <= _repeats(reference, axis)


def _repeats(indices: torch.Tensor, axis: int) -> int:
    ordered = indices.sort(axis).values
    return int((ordered.diff(dim=axis) == 0).sum())
