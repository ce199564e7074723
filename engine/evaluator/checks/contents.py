"""Input contents for timed calls that no earlier call saw and that no result of an earlier call predicts.

Every call gets its own secret mix of drawn input sets. What makes an input valid stays: bounds, signs, zero patterns,
order, sums, symmetry. Knows no worker and no clock.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from enum import StrEnum

import torch

from engine.evaluator.checks.float8 import exact, is_float8, within
from engine.evaluator.machine.shared_tensors import TensorSpec, laid_out

BUDGET = 512 << 20
MOST_SETS = 5
SPARSE = 32
CORNER = 64
EVEN = 1e-4
MIXABLE = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2)

Tensors = list[torch.Tensor]


class Kind(StrEnum):
    """How one input tensor is made fresh."""

    MIXED = "mixed row by row, with single elements of a third"
    BLENDED = "blended as a whole, to keep its structure"
    TAKEN = "taken whole"
    FIXED = "the same in every draw"


class Contents:
    """Draws a few input sets once, then makes new contents from them."""

    def __init__(
        self, draw: Callable[[], Sequence[torch.Tensor]], specs: Sequence[TensorSpec], device: str = "cpu"
    ) -> None:
        self._draw = draw
        self._specs = specs
        self._device = device
        self._choose = random.Random(os.urandom(16))
        self._generator = torch.Generator(device)
        self._generator.manual_seed(int.from_bytes(os.urandom(7), "little"))
        size = max(1, sum(spec.nbytes for spec in specs))
        self._sets = [self._drawn() for _ in range(max(2, min(MOST_SETS, BUDGET // size)))]
        self.kinds = [kind_of([contents[n] for contents in self._sets]) for n in range(len(specs))]

    @property
    def is_mixed(self) -> bool:
        """True when a mix makes contents fresh; otherwise each call's are drawn anew."""
        return Kind.MIXED in self.kinds or Kind.BLENDED in self.kinds

    @property
    def can_vary(self) -> bool:
        """False when the task's inputs are the same in every draw, or it has none."""
        return any(kind is not Kind.FIXED for kind in self.kinds)

    def fresh(self) -> Tensors:
        """Contents for one call, in memory as in the workers' buffers."""
        tensors = self._fresh()
        return [
            tensor if spec.is_dense else laid_out(spec, tensor, self._device)
            for spec, tensor in zip(self._specs, tensors, strict=True)
        ]

    def _fresh(self) -> Tensors:
        if not self.is_mixed:
            return self._drawn()
        first, second, *rest = self._choose.sample(self._sets, min(3, len(self._sets)))
        third = rest[0] if rest else self._choose.choice((first, second))
        weight = self._weights(())
        taken = self._choose.choice(self._sets)
        return [
            self._made(kind, a, b, c, weight, t)
            for kind, a, b, c, t in zip(self.kinds, first, second, third, taken, strict=True)
        ]

    def describe(self) -> str:
        """For the record."""
        if not self.can_vary:
            return "the task's inputs are the same in every draw"
        if not self.is_mixed:
            return "every call's inputs are drawn anew"
        ways = ", ".join(f"{kind} ({self.kinds.count(kind)})" for kind in Kind if kind in self.kinds)
        return f"every call has a secret mix of its own of {len(self._sets)} drawn sets; tensors {ways}"

    def _made(
        self, kind: Kind, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, weight: torch.Tensor, taken: torch.Tensor
    ) -> torch.Tensor:
        if kind in (Kind.TAKEN, Kind.FIXED):
            return taken
        if is_float8(a):
            return within(self._made(kind, exact(a), exact(b), exact(c), weight, taken), a.dtype)
        if kind is Kind.BLENDED or a.dim() == 0:
            return torch.lerp(a, b, weight.to(a.dtype))
        blended = torch.lerp(a, b, self._weights((*a.shape[:-1], 1)).to(a.dtype))
        places = torch.randint(a.numel(), (a.numel() // SPARSE + 1,), generator=self._generator, device=self._device)
        _flat(blended).index_copy_(0, places, _flat(c)[places])
        return blended

    def _weights(self, shape: tuple[int, ...]) -> torch.Tensor:
        return torch.rand(shape, generator=self._generator, device=self._device) * 0.8 + 0.1

    def _drawn(self) -> Tensors:
        return [
            laid_out(spec, drawn, self._device) if spec.is_dense else drawn.clone()
            for spec, drawn in zip(self._specs, self._draw(), strict=True)
        ]


def kind_of(draws: Sequence[torch.Tensor]) -> Kind:
    """How a tensor may be made fresh, from several draws of it."""
    dtype = draws[0].dtype
    draws = list(map(exact, draws))
    first = draws[0]
    if first.numel() == 0 or all(_is_same(first, other) for other in draws[1:]):
        return Kind.FIXED
    if dtype not in MIXABLE or not all(bool(draw.isfinite().all()) for draw in draws):
        return Kind.TAKEN
    if bool((first == first.round()).all()) or _has_even_sums(first.square()):
        return Kind.TAKEN
    return Kind.BLENDED if _is_symmetric(first) or _is_sorted(first) or _has_even_sums(first) else Kind.MIXED


def _is_same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.equal(a.nan_to_num() if a.is_floating_point() else a, b.nan_to_num() if b.is_floating_point() else b)


def _is_symmetric(tensor: torch.Tensor) -> bool:
    if tensor.dim() < 2 or tensor.shape[-1] != tensor.shape[-2]:
        return False
    corner = tensor[..., :CORNER, :CORNER]
    return torch.equal(corner, corner.mT) and torch.equal(tensor, tensor.mT)


def _is_sorted(tensor: torch.Tensor) -> bool:
    """Along any dimension, up or down; a corner tells most tensors apart."""
    corner = tensor[tuple(slice(0, CORNER) for _ in tensor.shape)]
    return any(
        tensor.shape[axis] > 2 and _is_monotone(corner, axis) and _is_monotone(tensor, axis)
        for axis in range(tensor.dim())
    )


def _is_monotone(tensor: torch.Tensor, axis: int) -> bool:
    steps = tensor.diff(dim=axis)
    return bool((steps >= 0).all()) or bool((steps <= 0).all())


def _has_even_sums(tensor: torch.Tensor) -> bool:
    """True when the sums along some dimension are all the same, as those of probabilities or unit vectors are."""
    for axis in range(tensor.dim()):
        if tensor.shape[axis] < 3 or tensor.numel() == tensor.shape[axis]:
            continue
        sums = tensor.sum(dim=axis, dtype=torch.float64)
        if float(sums.max() - sums.min()) <= EVEN * float(sums.abs().mean()):
            return True
    return False


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """A dense tensor's elements in the order they lie in memory."""
    return tensor.as_strided((tensor.numel(),), (1,))
