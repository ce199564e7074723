"""Modules of a network whose calls go to kernels: each place asks its regions which of them the call belongs to.

A region is one kind of call (its shapes, what else it is given); a module that is called in several ways is in several.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch import nn

from . import _dispatch, _forms, _operators
from ._entries import Region
from ._modules import FALL_BACK, Optimised, Replaced, Served, _put, by_kernel, example_inputs, values_differ
from ._table import ENTRIES, PACKAGE, REGIONS

OTHER_CALL = "it is called with other arguments than the kernels of this place were judged with"


class Place(Optimised):
    """A module of the network, with the regions that it is a place of. It shares all parameters with `original`."""

    def __init__(self, original: nn.Module, regions: Sequence[Region], on_missing_backward: str) -> None:
        numbers = tuple(number for region in regions for number in region.entries)
        super().__init__(original, Served(numbers, "", on_missing_backward))
        self._regions = [
            (region, Served(region.entries, "", on_missing_backward, region.name)) for region in regions
        ]  # fmt: skip

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """As the original's."""
        found = self._region_of((inputs, named))
        if found is None:
            for _, served in self._regions:
                served.fall_back(OTHER_CALL)
            return self._original(*inputs, **named)
        region, served, given = found
        is_taken, result = by_kernel(self, served, given)
        if not is_taken:
            return self._original(*inputs, **named)
        computed = (result,) if isinstance(result, torch.Tensor) else tuple(result)
        return _forms.put(region.gives, (*computed, *given))

    def _region_of(self, call: tuple[Any, Any]) -> tuple[Region, Served, tuple[torch.Tensor, ...]] | None:
        """The region that a call is of: of those that are put together like it the one of its sizes, else the first,
        whose kernel then says what it does not take."""
        first = None
        for region, served in self._regions:
            tensors: dict[int, torch.Tensor] = {}
            if not _forms.take(region.takes, call, tensors):
                continue
            given = tuple(tensors[number] for number in range(len(tensors)))
            if any(_dispatch.has_sizes(ENTRIES[number], given) for number in served.entries):
                return region, served, given
            first = first or (region, served, given)
        return first


def placed(network: nn.Module, chosen: Collection[str], on_missing_backward: str = FALL_BACK) -> list[Replaced]:
    """Put the kernels of regions into their modules of the network.

    Raises:
        ValueError: a place is not there, is of another class, has other parameters, or computes something else than
            its region did. Nothing is replaced then.
    """
    by_path: dict[str, list[Region]] = {}
    for region in REGIONS:
        if region.name in chosen:
            for path in region.places:
                by_path.setdefault(path, []).append(region)
    ready = {path: _place(network, path, regions, on_missing_backward) for path, regions in by_path.items()}
    of_module = {id(place.original): place for place in ready.values()}
    replaced = []
    for path, module in reversed(list(network.named_modules(remove_duplicate=False))):  # from the inside out
        if (place := of_module.get(id(module))) is not None:  # at every path that leads to it
            _put(network, path, place)
            kernels = tuple(region.name for region, _ in place._regions)
            replaced.append(Replaced(path, type(module).__name__, kernels))
    return replaced[::-1]


def _place(network: nn.Module, path: str, regions: Sequence[Region], on_missing_backward: str) -> Place:
    try:
        module = network.get_submodule(path)
    except AttributeError:
        raise ValueError(f"{PACKAGE} is not for this {type(network).__name__}: it has no module {path}") from None
    if not path:
        raise ValueError("the network itself is what the kernels are for: put it into another module first")
    for region in regions:
        if reason := _unlike(module, region):
            raise ValueError(f"{PACKAGE}: {path} is none of region {region.name}: {reason}")
    return Place(module, regions, on_missing_backward)


def _unlike(module: nn.Module, region: Region) -> str:
    """Why a module is none of the region's: its class, its parameters, or the values of one call."""
    if type(module).__name__ != region.kind:
        return f"it is a {type(module).__name__}, not a {region.kind}"
    entry = ENTRIES[region.entries[0]]
    held = dict([*module.named_parameters(), *module.named_buffers()])
    for wanted in entry.state:
        if wanted.name not in held or tuple(held[wanted.name].shape) != wanted.shape:
            return f"it has no {wanted.name} {list(wanted.shape)}"
    state = [held[wanted.name] for wanted in entry.state]
    device = state[0].device if state else torch.device(entry.device)
    inputs = [value.to(device) for value in example_inputs(entry)]
    try:
        args, kwargs = _forms.put(region.takes, inputs)
    except _forms.NoForm:
        return ""  # a tensor that the work does not depend on is not at hand; the network's own values are compared
    try:
        with torch.no_grad():
            result = module(*args, **kwargs)
            ours = _operators.call(entry, "reference", inputs, state)
    except (RuntimeError, TypeError, ValueError) as error:
        return f"a call with the region's inputs fails: {error}"
    theirs: dict[int, torch.Tensor] = {}
    if not _forms.take(region.gives, result, theirs):
        return "its results are put together otherwise"
    computed = (ours,) if isinstance(ours, torch.Tensor) else tuple(ours)
    return values_differ(computed, [theirs[number] for number in range(len(computed))])
