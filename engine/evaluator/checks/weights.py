"""Which tensors of a module's state training changes, and other values for them. Calls no module and decides nothing.

Constructors leave many tensors constant: scales at one, shifts at zero, running statistics at zero and one. A kernel
that does not read them is right with these values alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from engine.evaluator.checks import float8
from engine.evaluator.machine.shared_tensors import TensorSpec

SPREAD = 0.3
SMALL = 0.05  # a constant of less, as a new layer's scale of 1e-6, hides what it multiplies
LEAST_SHARE = 0.1  # of a positive constant, that a changed one keeps at least
FLIPPED = 1 / 16  # of the elements of a scale: products and maxima do not commute with a negative one


class Kind(StrEnum):
    """How a tensor gets other values."""

    CONSTANT = "constant"
    POSITIVE = "constant, stays positive"
    DRAWN = "drawn by the constructor"
    COMPUTED = "computed by the constructor"


@dataclass(frozen=True, slots=True)
class Plan:
    """Which tensors of a state get other values, by name and how; and why the others stay."""

    varied: Mapping[str, Kind]
    stays: Mapping[str, str]

    def without(self, names: Iterable[str], reason: str) -> Plan:
        """The plan with some weights that stay."""
        out = set(names)
        return Plan(
            {name: kind for name, kind in self.varied.items() if name not in out},
            {**self.stays, **dict.fromkeys(sorted(out), reason)},
        )

    def positive(self) -> Plan:
        """The plan with all constants above zero kept there: where a root or a logarithm is taken of one."""
        kinds = {name: Kind.POSITIVE if kind is Kind.CONSTANT else kind for name, kind in self.varied.items()}
        return Plan(kinds, self.stays)


def planned(model: nn.Module, other: nn.Module) -> Plan:
    """What may change, by two modules made under different seeds.

    Parameters; and of the persistent buffers those that hold statistics or that no seed and no formula explains: what
    is computed from sizes alone, a table of frequencies or a mask, is the same in every checkpoint.
    """
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    drawn_again = other.state_dict()
    varied: dict[str, Kind] = {}
    stays: dict[str, str] = {}
    seen: dict[int, str] = {}
    for name, value in model.state_dict().items():
        twin = seen.setdefault(value.data_ptr(), name) if value.numel() else name
        if twin != name:
            stays[name] = f"is {twin} under another name"
        elif not value.is_floating_point():
            stays[name] = "holds no floating-point numbers"
        elif not value.numel():
            stays[name] = "has no elements"
        else:
            kind = _kind(value, drawn_again[name], is_parameter=name in parameters)
            if kind is None:
                stays[name] = "is a table that the constructor computes"
            else:
                varied[name] = kind
    return Plan(varied, stays)


def _kind(value: torch.Tensor, other: torch.Tensor, *, is_parameter: bool) -> Kind | None:
    if not float8.equal(value, other):
        return Kind.DRAWN
    value = float8.exact(value)
    first = value.flatten()[0]
    if bool((value == first).all()):
        if is_parameter:
            return Kind.CONSTANT
        if value.numel() == 1 and float(first) not in (0.0, 1.0):
            return None  # a factor such as 1 / sqrt(size)
        return Kind.POSITIVE if float(first) > 0 else Kind.CONSTANT
    return Kind.COMPUTED if is_parameter else None


def other_values(
    kind: Kind, constructed: torch.Tensor, other: torch.Tensor, generator: torch.Generator
) -> torch.Tensor:
    """New values in the place of those that a constructor left; `other` is what another seed gave.

    What was drawn keeps its distribution: each element is one of the two draws'.
    """
    if float8.is_float8(constructed):
        changed = other_values(kind, float8.exact(constructed), float8.exact(other), generator)
        return float8.within(changed, constructed.dtype)
    if kind is Kind.DRAWN:
        chosen = torch.rand(constructed.shape, generator=generator, device=constructed.device) < 0.5
        return torch.where(chosen, constructed, other)
    noise = _normal(constructed, generator)
    if kind is Kind.COMPUTED:
        return constructed + SPREAD * constructed.float().square().mean().sqrt().to(constructed.dtype) * noise
    value = float(constructed.flatten()[0])
    if abs(value) < SMALL:
        return constructed.abs() + SPREAD * (noise.abs() if kind is Kind.POSITIVE else noise)
    scale = 1 + SPREAD * noise
    if kind is Kind.POSITIVE:
        return constructed * scale.clamp(min=LEAST_SHARE)
    flips = torch.rand(constructed.shape, generator=generator, device=constructed.device) < FLIPPED
    return constructed * torch.where(flips, -scale, scale)


def _normal(like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.randn(like.shape, generator=generator, device=like.device).to(like.dtype)


def reordered(specs: Mapping[str, TensorSpec]) -> dict[str, TensorSpec]:
    """Of tensors by name those that fill their memory in another order than the usual one, such as channels last."""
    return {name: spec for name, spec in specs.items() if spec.is_dense and not spec.is_contiguous}


def layout_of(make: Callable[[], nn.Module]) -> dict[str, TensorSpec]:
    """How the state of a module that is made here lies in memory; nothing where it cannot be made without contents."""
    with suppress(Exception), torch.device("meta"):
        return {name: TensorSpec.of(value) for name, value in make().state_dict().items() if not is_lazy(value)}
    return {}


def lay_out(model: nn.Module, specs: Mapping[str, TensorSpec]) -> None:
    """Let tensors of a module's state lie as the reference's of the same names and shapes do, where these are
    `reordered`: a network hands over its own. Values stay."""
    state = model.state_dict(keep_vars=True)
    for name, spec in reordered(specs).items():
        value = state.get(name)
        if value is not None and not is_lazy(value) and tuple(value.shape) == spec.shape:
            with torch.no_grad():
                lying = torch.empty_strided(spec.shape, spec.stride, dtype=value.dtype, device=value.device)
                value.data = lying.copy_(value)


def misfits(
    names: Sequence[str], specs: Sequence[tuple[tuple[int, ...], str]], state: Mapping[str, torch.Tensor]
) -> dict[str, list[str]]:
    """How a state differs from the one that these names, shapes and dtypes describe, by kind of difference."""
    wanted = dict(zip(names, specs, strict=True))
    other = [
        f"{name} is {_described(*_spec(value))}, not {_described(*wanted[name])}"
        for name, value in state.items()
        if name in wanted and _spec(value) != wanted[name]
    ]
    return {
        "missing": [name for name in wanted if name not in state],
        "unexpected": [name for name in state if name not in wanted],
        "other": other,
    }


def _spec(value: torch.Tensor) -> tuple[tuple[int, ...], str]:
    return tuple(value.shape), str(value.dtype).removeprefix("torch.")


def _described(shape: tuple[int, ...], dtype: str) -> str:
    return f"{shape} {dtype}"
