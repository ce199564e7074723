"""Calls of modules that do equal work as one group: same class, settings, parameters, shapes, dtypes and strides.

A setting that the work does not depend on, such as a layer's number, splits groups here; whoever traces them puts those
with equal graphs together again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from engine.networks.watching import Call, Signature

_PLAIN = (bool, int, float, str, type(None), torch.dtype)


@dataclass(slots=True)
class Group:
    """Equal calls. `base` is what all groups share that may yet turn out equal."""

    kind: str
    base: tuple[Any, ...]
    signature: Signature
    paths: list[str] = field(default_factory=list)
    calls: dict[str, int] = field(default_factory=dict)
    """In one call of each workload."""
    ms: dict[str, float] = field(default_factory=dict)
    """In one call of each workload, with what stands inside."""

    def take(self, other: Group) -> None:
        """Count the other's calls as this one's."""
        self.paths += [path for path in other.paths if path not in self.paths]
        for workload, calls in other.calls.items():
            self.calls[workload] = self.calls.get(workload, 0) + calls
            self.ms[workload] = self.ms.get(workload, 0.0) + other.ms[workload]


def groups(module: nn.Module, calls: Mapping[str, Sequence[tuple[Call, float]]]) -> list[Group]:
    """Groups of all workloads' calls, each with its milliseconds, in the order in which they were first called."""
    modules = dict(module.named_modules())
    known = {path: (_base(part), settings_of(part)) for path, part in modules.items()}
    found: dict[tuple[Any, ...], Group] = {}
    for workload, timed in calls.items():
        for call, ms in timed:
            base, settings = known[call.path]
            key = (base, settings, call.signature)
            group = found.setdefault(key, Group(type(modules[call.path]).__name__, base, call.signature))
            if call.path not in group.paths:
                group.paths.append(call.path)
            group.calls[workload] = group.calls.get(workload, 0) + 1
            group.ms[workload] = group.ms.get(workload, 0.0) + ms
    return list(found.values())


def _base(module: nn.Module) -> tuple[Any, ...]:
    held = [*module.named_parameters(), *module.named_buffers()]
    kind = f"{type(module).__module__}.{type(module).__qualname__}"
    return kind, tuple((name, tuple(tensor.shape), str(tensor.dtype)) for name, tensor in held)


def settings_of(module: nn.Module) -> tuple[Any, ...]:
    """Plain attributes of a module and of those inside it: epsilons, strides, what a person gave the constructor."""
    return tuple(
        (path, type(part).__qualname__, part.training, *_plain_items(vars(part)))
        for path, part in module.named_modules()
    )


def _plain_items(attributes: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    for name, value in sorted(attributes.items()):
        if name.startswith("_") or name == "training":
            continue
        if isinstance(value, _PLAIN) or (
            isinstance(value, (tuple, list)) and all(isinstance(v, _PLAIN) for v in value)
        ):
            yield name, repr(value)
        elif callable(value) and not isinstance(value, nn.Module):
            yield name, getattr(value, "__qualname__", type(value).__qualname__)
