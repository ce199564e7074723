"""Arguments and results of a call as flat lists of tensors, and how they stand in lists, tuples and dicts.

Both workers flatten and rebuild alike; what is described is plain JSON. Computes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

Node = Mapping[str, Any]
_PLAIN = (bool, int, float, str, type(None))
TENSOR = "a tensor"
_SHOWN = 300


class Unusable(Exception):
    """An argument that cannot be handed to another process; the message says which and what to do."""


def flattened(items: Sequence[Any]) -> tuple[list[torch.Tensor], list[Node]]:
    """The tensors of arguments in order, and for each argument how it is rebuilt from them.

    Raises:
        Unusable: one of them is neither a tensor, a plain value, a dtype or device, nor made of these.
    """
    tensors: list[torch.Tensor] = []
    return tensors, [_described(item, tensors) for item in items]


def rebuilt(nodes: Sequence[Node], tensors: Sequence[torch.Tensor]) -> list[Any]:
    """The arguments again, with these tensors in them."""
    return [_made(node, tensors) for node in nodes]


def leaves_of(outputs: Any) -> list[Any]:
    """What a result holds, in order: of dicts by key, whatever the order of their keys."""
    if isinstance(outputs, Mapping):
        return [leaf for key in _keys(outputs) for leaf in leaves_of(outputs[key])]
    if isinstance(outputs, (tuple, list)):
        return [leaf for part in outputs for leaf in leaves_of(part)]
    return [outputs]


def form_of(outputs: Any) -> str:
    """How a result is made up, in words. Tuples, lists and named tuples are alike: each is unpacked the same way."""
    return _form(outputs)[:_SHOWN]


def _form(outputs: Any) -> str:
    if isinstance(outputs, Mapping):
        return "a dict {" + ", ".join(f"{key!r}: {_form(outputs[key])}" for key in _keys(outputs)) + "}"
    if isinstance(outputs, (tuple, list)):
        return "a tuple or list of (" + ", ".join(map(_form, outputs)) + ("," if len(outputs) == 1 else "") + ")"
    return TENSOR


def _keys(outputs: Mapping[Any, Any]) -> list[Any]:
    return sorted(outputs, key=repr)


def _described(item: Any, tensors: list[torch.Tensor]) -> Node:
    if isinstance(item, torch.Tensor):
        if item.layout is not torch.strided:
            raise Unusable(f"a sparse tensor ({item.layout}): make it dense, or build the sparse one in forward")
        tensors.append(item)
        return {"tensor": len(tensors) - 1}
    if isinstance(item, _PLAIN):
        return {"value": item}
    if isinstance(item, (torch.dtype, torch.device)):
        return {type(item).__name__: str(item).removeprefix("torch.")}
    if type(item) in (list, tuple):
        return {type(item).__name__: [_described(part, tensors) for part in item]}
    if type(item) is dict and all(isinstance(key, str) for key in item):
        return {"dict": {key: _described(part, tensors) for key, part in item.items()}}
    kind = f"{type(item).__module__}.{type(item).__qualname__}".removeprefix("builtins.")
    raise Unusable(
        f"a {kind}: use tensors, numbers, strings, dtypes, devices, and lists, tuples and dicts (by names) of these"
    )


def _made(node: Node, tensors: Sequence[torch.Tensor]) -> Any:
    kind, what = next(iter(node.items()))
    match kind:
        case "tensor":
            return tensors[what]
        case "dtype":
            return getattr(torch, what)
        case "device":
            return torch.device(what)
        case "list":
            return [_made(part, tensors) for part in what]
        case "tuple":
            return tuple(_made(part, tensors) for part in what)
        case "dict":
            return {key: _made(part, tensors) for key, part in what.items()}
    return what
