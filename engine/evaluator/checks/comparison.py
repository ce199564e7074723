"""How far one output is from the float64 answer, and where; how NaN and infinities stand beside the reference's.

And double precision itself, the arithmetic that defines right. Pure functions over tensors; decides nothing.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from engine.evaluator.checks import float8
from storage.results.evaluation_results import Mismatch

HEAT_CELLS = 16
CHUNK = 1 << 17
DEVICE_CHUNK = 1 << 26
# A row much smaller than the rest may be what cancellation left over, so it is not judged by its own size alone.
LEAST_ROW = 0.01
# A kernel may flush denormal numbers to zero: an error of the smallest normal number must stay below any tolerance.
DENORMAL_ROOM = 2.0**20

Scale = float | torch.Tensor


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of one output. `relative` is over |answer| + scale; inf when a finite value is missing.

    `relative` and `absolute` are the largest, `typical` is the root mean square of the relative ones.
    """

    relative: float
    absolute: float
    typical: float = 0.0


def real(tensor: torch.Tensor) -> torch.Tensor:
    """Complex numbers as pairs; everything else as it is."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def dtype_of(tensor: torch.Tensor) -> str:
    """Name of the dtype that a tensor's numbers are rounded to."""
    return str(real(tensor).dtype).removeprefix("torch.")


def scale_of(answer: torch.Tensor, reference: torch.Tensor | None = None) -> float:
    """Root mean square of the finite part of a float64 answer.

    With `reference`, its output in the task's dtype: its rounding noise where the answer is zero throughout,
    and never so small that a denormal number counts.
    """
    scale = _root_mean_square(real(answer))
    if reference is None or not real(reference).dtype.is_floating_point:
        return scale
    return max(scale or _root_mean_square(real(reference)), _least_scale(real(reference).dtype))


def row_scales(answer: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Root mean square of each row of the last dimension, at least a hundredth of the whole answer's: (rows,)."""
    whole = scale_of(answer, reference)
    answer = real(answer)
    rows = answer.reshape(-1, answer.shape[-1]) if answer.dim() else answer.reshape(1, 1)
    return rows.to(torch.float64).square().mean(1).sqrt().nan_to_num(whole).clamp_(min=LEAST_ROW * whole)


def errors(out: torch.Tensor, answer: torch.Tensor, reference: torch.Tensor, scale: Scale) -> Errors:
    """Errors of `out` against the float64 `answer`; `reference` is its output in the task's dtype.

    Where the reference itself is not finite, the candidate must give the same, or the finite answer it missed.
    """
    worst_relative, worst_absolute, squares = 0.0, 0.0, 0.0
    for (o, a, r), s in _pieces(scale, out, answer, reference):
        wide = a.to(torch.float64)
        absolute = _apart(o, a)
        relative = absolute / wide.abs().add_(s)
        if not r.dtype.is_floating_point or not math.isfinite(float(relative.max())):
            relative, absolute = _distance(o, a, r, s)
        worst_relative = max(worst_relative, _largest(relative))
        worst_absolute = max(worst_absolute, _largest(absolute))
        squares += float(torch.dot(relative, relative))
    typical = math.sqrt(squares / max(real(out).numel(), 1)) if math.isfinite(squares) else math.inf
    return Errors(worst_relative, worst_absolute, typical)


def is_close(out: torch.Tensor, reference: torch.Tensor, allowed: float) -> bool:
    """Quick test in the outputs' own dtype; false also when it cannot tell (something is not finite)."""
    out, reference = real(out), real(reference)
    if not reference.dtype.is_floating_point:
        return torch.equal(out, reference)
    scale = float(reference.float().square().mean().sqrt()) if reference.numel() else 0.0
    for (o, r), s in _pieces(scale, out, reference):
        apart = float8.distance(o, r) if float8.is_float8(o) else (o - r).abs_()
        excess = apart.sub_(float8.exact(r).abs().add_(s).mul_(allowed))
        if not float(excess.max()) <= 0.0:
            return False
    return True


def wrong(
    out: torch.Tensor, answer: torch.Tensor, reference: torch.Tensor, scale: Scale, tolerance: float
) -> torch.Tensor:
    """Mask of the elements outside the tolerance; not-less, so that NaN counts as wrong."""
    masks = [~(_distance(o, a, r, s)[0] <= tolerance) for (o, a, r), s in _pieces(scale, out, answer, reference)]
    if not masks:
        return torch.zeros(out.shape, dtype=torch.bool)
    mask = torch.cat(masks).view(real(out).shape)
    return mask.any(-1) if out.is_complex() else mask


def describe(out: torch.Tensor, answer: torch.Tensor, mask: torch.Tensor, figures: Errors, trial: str) -> Mismatch:
    """The record of a wrong output: first wrong element in row-major order, counts, and a heat map."""
    first = first_of(mask)
    return Mismatch(
        index=_place(first, mask.shape),
        expected=_figure(answer.flatten()[first]),
        actual=_figure(out.flatten()[first]),
        wrong_count=int(mask.sum()),
        total_count=mask.numel(),
        max_abs_error=figures.absolute,
        max_rel_error=figures.relative,
        shape=tuple(out.shape),
        heat=heat(mask),
        trial=trial,
    )


def _place(number: int, shape: Sequence[int]) -> tuple[int, ...]:
    """Where an element stands, counted in row-major order. Trap: torch.unravel_index imports sympy, half a second."""
    index: list[int] = []
    for size in reversed(shape):
        number, at = divmod(number, size)
        index.append(at)
    return tuple(reversed(index))


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


def _pieces(scale: Scale, *tensors: torch.Tensor) -> Iterator[tuple[tuple[torch.Tensor, ...], Scale]]:
    """Pieces small enough to stay in cache over the passes of one comparison, each with its scale."""
    columns = real(tensors[0]).shape[-1] if real(tensors[0]).dim() else 1
    start = 0
    for parts in pieces(*tensors):
        count = parts[0].numel()
        if not count:
            continue
        rows = torch.arange(start, start + count) // columns if isinstance(scale, torch.Tensor) else None
        yield parts, scale if rows is None or isinstance(scale, float) else scale[rows]
        start += count


def first_of(mask: torch.Tensor) -> int:
    """Place of the first true element in row-major order; 0 where there is none."""
    return int(mask.reshape(-1).to(torch.uint8).argmax())


def pieces(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """Flat pieces of tensors of one shape, side by side."""
    return zip(*(_split(real(tensor).flatten()) for tensor in tensors), strict=True)


def _split(flat: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """On a GPU what counts is the number of launches; a piece must still leave room for its float64 copies."""
    return torch.split(flat, CHUNK if flat.device.type == "cpu" else DEVICE_CHUNK)


def _distance(
    out: torch.Tensor, answer: torch.Tensor, reference: torch.Tensor, scale: Scale
) -> tuple[torch.Tensor, torch.Tensor]:
    """Relative and absolute distance per element; inf where the candidate is not finite and the reference is."""
    if not reference.dtype.is_floating_point:
        absolute = (out.to(torch.float64) - reference.to(torch.float64)).abs_()
        return torch.where(out == reference, 0.0, torch.inf).to(torch.float64), absolute
    wide, reference, right = (tensor.to(torch.float64) for tensor in (out, reference, answer))
    target = torch.where(torch.isfinite(right), right, reference)
    comparable = torch.isfinite(target) & torch.isfinite(wide)
    apart = _apart(out, answer if float8.is_float8(answer) else target)
    absolute = torch.where(comparable, apart, 0.0)
    relative = torch.where(absolute == 0, 0.0, absolute / (target.abs() + scale))
    is_same = (wide == reference) | (torch.isnan(wide) & torch.isnan(reference))
    overflowed = is_same & ~torch.isfinite(reference)
    return torch.where(comparable | overflowed, relative, torch.inf), absolute


def _apart(out: torch.Tensor, answer: torch.Tensor) -> torch.Tensor:
    """Absolute distance per element, of an output of 8 bits from what rounds to it: float64."""
    if float8.is_float8(out):
        return float8.distance(out, answer)
    return (out.to(torch.float64) - answer.to(torch.float64)).abs_()


def _largest(values: torch.Tensor) -> float:
    """Maximum in which NaN counts as infinite."""
    return float(torch.nan_to_num(values, nan=torch.inf, posinf=torch.inf).max()) if values.numel() else 0.0


def _root_mean_square(numbers: torch.Tensor) -> float:
    total, count = 0.0, 0
    for piece in _split(numbers.flatten()):
        piece = piece.to(torch.float64)
        squares = float((piece * piece).sum())
        if not math.isfinite(squares):
            piece = piece[torch.isfinite(piece)]
            squares = float((piece * piece).sum())
        total += squares
        count += piece.numel()
    return (total / count) ** 0.5 if count else 0.0


def _least_scale(dtype: torch.dtype) -> float:
    """Zero for float16 and 8-bit floats, whose denormal numbers are part of their everyday range."""
    return 0.0 if dtype in (torch.float16, *float8.FORMATS) else torch.finfo(dtype).tiny * DENORMAL_ROOM


def _figure(value: torch.Tensor) -> float:
    """One number for a message: of a complex one its magnitude."""
    return float(value.abs() if value.is_complex() else value)


@dataclass(frozen=True, slots=True)
class Difference:
    """Counts of elements, and of those unlike the reference, by what the reference gives in its own dtype."""

    total: int
    nan: int
    infinite: int
    lost_nan: int
    wrong_infinite: int
    wrong_finite: int

    @property
    def count(self) -> int:
        """All elements unlike the reference's."""
        return self.lost_nan + self.wrong_infinite + self.wrong_finite

    def __str__(self) -> str:
        return (
            f"{self.count} of {self.total} elements unlike the reference "
            f"({self.lost_nan} of {self.nan} NaN, {self.wrong_infinite} of {self.infinite} infinite, "
            f"{self.wrong_finite} of {self.total - self.nan - self.infinite} finite)"
        )


def difference(
    out: torch.Tensor, answer: torch.Tensor, reference: torch.Tensor, scale: Scale, allowed: float
) -> tuple[Difference, torch.Tensor]:
    """The counts, and the mask of the elements that are unlike.

    NaN asks for NaN, an infinity for the same infinity, a finite value for one within the tolerance.
    """
    pair, computed = float8.exact(real(reference)), float8.exact(real(out))
    is_nan, is_infinite = torch.isnan(pair), torch.isinf(pair)
    lost = is_nan & ~torch.isnan(computed)
    other = is_infinite & (computed != pair)
    outside = wrong(real(out), real(answer), real(reference), scale, allowed)
    off = outside & ~is_nan & ~is_infinite
    counts = [int(mask.sum()) for mask in (is_nan, is_infinite, lost, other, off)]
    return Difference(pair.numel(), *counts), lost | other | off


def is_rounded(tensor: torch.Tensor) -> bool:
    """True for numbers that arithmetic rounds."""
    return tensor.dtype.is_floating_point or tensor.is_complex()


def wide_dtype(dtype: torch.dtype) -> str:
    """Name of the dtype in which an output of `dtype` is answered."""
    if dtype.is_complex:
        return "complex128"
    return "float64" if dtype.is_floating_point else str(dtype).removeprefix("torch.")


def widened(model: nn.Module) -> nn.Module:
    """A copy in float64."""
    return in_double(copy.deepcopy(model))


def in_double(model: nn.Module) -> nn.Module:
    """The model in float64. `double` leaves complex parameters as they are."""
    wide = model.double()
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
    # Numbers of 8 bits are exact as they are given; the arithmetic with them rounds to float32.
    step = size * (torch.finfo(float8.exact(tensor[:0] if tensor.dim() else tensor).dtype).eps / 2)
    if alternately:
        step.flatten()[1::2].neg_() if step.is_contiguous() else step.neg_()
    return wide + step
