"""How far one output is from the float64 answer, and where. Pure functions over tensors; decides nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from storage.records import Mismatch

HEAT_CELLS = 16
CHUNK = 1 << 17


@dataclass(frozen=True, slots=True)
class Errors:
    """Largest errors of one output. `relative` is over |answer| + rms(answer); inf when a finite value is missing."""

    relative: float
    absolute: float


def scale_of(answer: torch.Tensor) -> float:
    """Root mean square of the finite part of a float64 answer."""
    flat = answer.flatten()
    total, count = 0.0, 0
    for piece in torch.split(flat, CHUNK):
        piece = piece.to(torch.float64)
        squares = float((piece * piece).sum())
        if not math.isfinite(squares):
            piece = piece[torch.isfinite(piece)]
            squares = float((piece * piece).sum())
        total += squares
        count += piece.numel()
    return (total / count) ** 0.5 if count else 0.0


def errors(out: torch.Tensor, answer: torch.Tensor, own: torch.Tensor, scale: float) -> Errors:
    """Errors of `out` against the float64 `answer`; `own` is the reference's output in the task's dtype.

    Where the reference itself is not finite, the candidate must not be finite either, and no distance is taken.
    """
    worst_relative, worst_absolute = 0.0, 0.0
    for o, a, r in _pieces(out, answer, own):
        wide = a.to(torch.float64)
        absolute = (o.to(torch.float64) - wide).abs_()
        relative = absolute / wide.abs().add_(scale)
        if not bool(torch.isfinite(relative.max())):
            relative, absolute = _distance(o, a, r, scale)
        worst_relative = max(worst_relative, _largest(relative))
        worst_absolute = max(worst_absolute, _largest(absolute))
    return Errors(worst_relative, worst_absolute)


def is_close(out: torch.Tensor, own: torch.Tensor, allowed: float) -> bool:
    """Quick test in the outputs' own dtype; false also when it cannot tell (something is not finite)."""
    if not own.dtype.is_floating_point:
        return torch.equal(out, own)
    scale = float(own.float().square().mean().sqrt()) if own.numel() else 0.0
    for o, r in _pieces(out, own):
        excess = (o - r).abs_().sub_(r.abs().add_(scale).mul_(allowed))
        if not float(excess.max()) <= 0.0:
            return False
    return True


def wrong(out: torch.Tensor, answer: torch.Tensor, own: torch.Tensor, scale: float, tolerance: float) -> torch.Tensor:
    """Mask of the elements outside the tolerance; not-less, so that NaN counts as wrong."""
    masks = [~(_distance(o, a, r, scale)[0] <= tolerance) for o, a, r in _pieces(out, answer, own)]
    return torch.cat(masks).view(out.shape) if masks else torch.zeros(out.shape, dtype=torch.bool)


def describe(out: torch.Tensor, answer: torch.Tensor, mask: torch.Tensor, found: Errors, trial: str) -> Mismatch:
    """The record of a wrong output: first wrong element in row-major order, counts, and a heat map."""
    first = int(mask.flatten().to(torch.uint8).argmax())
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(first), mask.shape)) if mask.dim() else ()
    return Mismatch(
        index=index,
        expected=float(answer.flatten()[first]),
        actual=float(out.flatten()[first]),
        wrong_count=int(mask.sum()),
        total_count=mask.numel(),
        max_abs_error=found.absolute,
        max_rel_error=found.relative,
        shape=tuple(out.shape),
        heat=heat(mask),
        trial=trial,
    )


def heat(mask: torch.Tensor) -> tuple[tuple[float, ...], ...]:
    """Share of wrong elements on a grid of at most 16 x 16 cells over rows and the last dimension."""
    matrix = mask.reshape(-1, mask.shape[-1]) if mask.dim() else mask.reshape(1, 1)
    rows = torch.tensor_split(matrix, min(HEAT_CELLS, matrix.shape[0]), dim=0)
    return tuple(
        tuple(
            round(float(cell.float().mean()), 4) for cell in row.tensor_split(min(HEAT_CELLS, matrix.shape[1]), dim=1)
        )
        for row in rows
    )


def _pieces(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """Pieces small enough to stay in cache over the passes of one comparison."""
    return zip(*(torch.split(tensor.flatten(), CHUNK) for tensor in tensors), strict=True)


def _distance(
    out: torch.Tensor, answer: torch.Tensor, own: torch.Tensor, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Relative and absolute distance per element; inf where finiteness differs from the reference's."""
    wide, answer = out.to(torch.float64), answer.to(torch.float64)
    comparable = torch.isfinite(answer) & torch.isfinite(own)
    absolute = (wide - answer).abs()
    relative = torch.where(absolute == 0, 0.0, absolute / (answer.abs() + scale))
    same_gap = torch.where(torch.isfinite(wide), torch.inf, 0.0).to(torch.float64)
    missing = torch.where(torch.isfinite(wide), relative, torch.inf)
    return torch.where(comparable, missing, same_gap), torch.where(comparable, absolute, 0.0)


def _largest(values: torch.Tensor) -> float:
    """Maximum in which NaN counts as infinite."""
    return float(torch.nan_to_num(values, nan=torch.inf, posinf=torch.inf).max()) if values.numel() else 0.0
