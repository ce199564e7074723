"""The state of a reference's module: as constructed, with other values by a seed, and put back after each call.

Runs in the reference's worker. Which tensors may get other values is decided by `examining`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from engine.evaluator.checks import float8, weights
from engine.evaluator.checks.weights import Kind


class HeldState:
    """Parameters and buffers of `model` by name, which this changes in place.

    Attributes:
        values: as they are now.
        varied: those that may get other values, and how.
        changing: buffers that a call changes.
    """

    def __init__(self, model: nn.Module, another: Callable[[], Mapping[str, torch.Tensor]], device: str) -> None:
        """`another` makes the state that another seed of the constructor gives."""
        self.values: Mapping[str, torch.Tensor] = model.state_dict()
        self.varied: Mapping[str, Kind] = {}
        self.changing: list[str] = []
        self._another = another
        self._device = device
        self._constructed = {name: value.clone() for name, value in self.values.items()}
        self._other: Mapping[str, torch.Tensor] | None = None
        self._before = dict(self._constructed)
        self._changed: set[str] = set()  # names that have other values than the constructor's
        parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
        self._buffers = [name for name in self.values if name not in parameters]

    def see_what_changed(self) -> None:
        """After a first call: what it changed is put back, now and from here on."""
        self.changing = [name for name in self._buffers if not float8.equal(self.values[name], self._before[name])]
        self.restore()

    def restore(self) -> None:
        """Undo what a call in training mode does to running statistics."""
        for name in self.changing:
            self.values[name].copy_(self._before[name])

    def set(self, seed: int | None, only: Sequence[str] = ()) -> None:
        """Other values by a seed, of the names `only` where there are some; those as constructed without a seed."""
        for name in self._changed:
            self.values[name].copy_(self._constructed[name])
        self._changed = set()
        if seed is not None:
            self._vary(seed, only)
        self._before = {name: self.values[name].clone() for name in self.changing}

    def take(self, values: Sequence[torch.Tensor]) -> None:
        """These values, in the order of the names, until others are set."""
        for value, given in zip(self.values.values(), values, strict=True):
            value.copy_(given)
        self._changed = set(self.values)
        self._before = {name: self.values[name].clone() for name in self.changing}

    @contextmanager
    def other(self, seed: int) -> Iterator[None]:
        """Inside, everything that may vary has other values."""
        held = {name: self.values[name].clone() for name in self.varied}
        changed = set(self._changed)
        self._vary(seed)
        try:
            yield
        finally:
            for name, value in held.items():
                self.values[name].copy_(value)
            self._changed = changed

    def copy_to(self, targets: Sequence[torch.Tensor]) -> None:
        """The values, in the order of their names."""
        for target, value in zip(targets, self.values.values(), strict=True):
            target.copy_(value)

    def _vary(self, seed: int, only: Sequence[str] = ()) -> None:
        other = self._by_another_seed()
        for number, (name, kind) in enumerate(self.varied.items()):
            if not only or name in only:
                generator = torch.Generator(self._device)
                generator.manual_seed(seed + number)
                self.values[name].copy_(weights.other_values(kind, self._constructed[name], other[name], generator))
                self._changed.add(name)

    def _by_another_seed(self) -> Mapping[str, torch.Tensor]:
        """Made once, where something of it is used."""
        if Kind.DRAWN not in self.varied.values():
            return self._constructed
        if self._other is None:
            self._other = self._another()
        return self._other
