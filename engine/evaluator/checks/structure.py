"""Results of calls as flat lists of tensors, and how these stand in lists, tuples, dicts and dataclasses.

None, numbers, strings, dtypes and devices in a result are part of its form. A candidate's result is read without
running a line of its classes: what they would say of themselves would be said after the clock has stopped. Computes
nothing.
"""

from __future__ import annotations

import dataclasses
import hashlib
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from engine.evaluator.checks.arguments import MOST_DEPTH, MOST_LEAVES, PLAIN, cut, is_judged, keys_of, tensor_shown

TENSOR = "a tensor"
MOST_CHARACTERS = 200
"""Of a string that is part of a form."""
MOST_WHOLE = 1 << 64
_SHOWN = 300
_SHOWN_TO_MODEL = 2000

_FIELDS = "__dataclass_fields__"
_BASES, _ENTRIES = (type.__dict__[name] for name in ("__mro__", "__dict__"))

_registered: Mapping[Any, Any] = {}


class TooMuch(ValueError):
    """A result that nobody could compare."""


def read_registered() -> None:
    """From here on take apart what is registered with PyTorch's pytrees, by its class's own code: in the process of a
    reference, whose text is a person's own."""
    global _registered
    _registered = pytree.SUPPORTED_NODES


def leaves_of(outputs: Any) -> list[Any]:
    """The tensors of a result, and whatever else is no part of its form, in order: of dicts by key, whatever the order
    of their keys.

    Raises:
        TooMuch: it nests too deep or holds too many values.
    """
    if type(outputs) is torch.Tensor:
        return [outputs]
    return [leaf for _, leaf in _walked(outputs)]


def names_of(outputs: Any) -> list[str]:
    """What each of these is: `output 1`, `output 'past'[0][1]`; `the output` of one alone."""
    names = [f"output {path[0]!r}{''.join(f'[{key!r}]' for key in path[1:])}" for path, _ in _walked(outputs) if path]
    return names if len(names) > 1 else ["the output"] * len(leaves_of(outputs))


def form_of(outputs: Any) -> str:
    """How a result is made up, in words. Tuples, lists and named tuples are alike: each is unpacked the same way. So
    are dicts and dataclasses, each by its keys.

    Raises:
        TooMuch: as `leaves_of`.
    """
    leaves_of(outputs)
    text = _form(outputs)
    return text if len(text) <= _SHOWN else f"{cut(text, _SHOWN)} ({hashlib.sha256(text.encode()).hexdigest()[:16]})"


def refusal(leaves: Sequence[Any]) -> str:
    """Why results with these leaves cannot be compared; empty where they can."""
    other = next((type(leaf) for leaf in leaves if not isinstance(leaf, torch.Tensor)), None)
    if other is None:
        strange = next((leaf.dtype for leaf in leaves if not is_judged(leaf)), None)
        return "" if strange is None else (
            f"forward() returns a tensor of {strange}, whose numbers cannot be compared: return its bits as uint8, "
            "`.view(torch.uint8)`"
        )  # fmt: skip
    return (
        f"forward() returns a {other.__name__} among its results: return tensors, alone or in tuples, lists, dicts, "
        "dataclasses and registered pytree nodes, beside them None, numbers and short strings"
    )


def is_simple(outputs: Any) -> bool:
    """Whether a result is a tensor, or a list or tuple of tensors."""
    parts = [outputs] if isinstance(outputs, torch.Tensor) else outputs
    return isinstance(parts, (list, tuple)) and all(isinstance(part, torch.Tensor) for part in parts)


def shown(outputs: Any) -> str:
    """A result as Python would write it: `{'logits': float32[2, 8], 'past': (…,)}`."""
    return cut(_form(outputs, is_shown=True), _SHOWN_TO_MODEL)


def with_leaves(outputs: Any, leaves: Iterable[Any]) -> Any:
    """A result of the same form with these in the place of `leaves_of`, in plain tuples and dicts."""
    return _with(outputs, iter(leaves))


def _with(value: Any, leaves: Iterator[Any]) -> Any:
    parts = _parts(value)
    if parts is None:
        return value if _is_constant(value) else next(leaves)
    is_mapping, pairs = parts
    made = [(key, _with(part, leaves)) for key, part in pairs]
    return dict(made) if is_mapping else tuple(part for _, part in made)


def _walked(value: Any) -> list[tuple[tuple[Any, ...], Any]]:
    """Each leaf with the keys that lead to it."""
    found: list[tuple[tuple[Any, ...], Any]] = []
    waiting: list[tuple[tuple[Any, ...], Any]] = [((), value)]
    visited = 0
    while waiting:
        path, item = waiting.pop()
        visited += 1
        if len(path) > MOST_DEPTH or visited + len(waiting) > 4 * MOST_LEAVES or len(found) > MOST_LEAVES:
            raise TooMuch(
                f"forward returns more than {MOST_LEAVES:,} values, or nests them more than {MOST_DEPTH} deep"
            )
        parts = _parts(item)
        if parts is not None:
            waiting += [((*path, key), part) for key, part in reversed(parts[1])]
        elif not _is_constant(item):
            found.append((path, item))
    return found


def _form(value: Any, *, is_shown: bool = False) -> str:
    parts = _parts(value)
    if parts is None:
        if _is_constant(value):
            return str(value) if isinstance(value, (torch.dtype, torch.device)) else repr(value)
        return tensor_shown(value) if is_shown and isinstance(value, torch.Tensor) else TENSOR
    is_mapping, pairs = parts
    if is_mapping:
        text = "{" + ", ".join(f"{_key(key)}: {_form(part, is_shown=is_shown)}" for key, part in pairs) + "}"
        return text if is_shown else f"a dict {text}"
    text = "(" + ", ".join(_form(part, is_shown=is_shown) for _, part in pairs) + ("," if len(pairs) == 1 else "") + ")"
    return text if is_shown else f"a tuple or list of {text}"


def _is_constant(value: Any) -> bool:
    if type(value) is str:
        return len(value) <= MOST_CHARACTERS
    if type(value) is int:
        return abs(value) < MOST_WHOLE
    return _is_one_of(type(value), (*PLAIN, torch.dtype, torch.device))


def _is_one_of(kind: type, kinds: Iterable[type]) -> bool:
    """By identity: `in` would ask the class of the class."""
    return any(kind is known for known in kinds)


def _parts(value: Any) -> tuple[bool, Sequence[tuple[Any, Any]]] | None:
    """Whether it has keys, and its parts by key or number; None for what is not taken apart.

    `type` tells a class truly, where `isinstance` asks the object; the methods are those of the built-in classes.
    """
    kind = type(value)
    if issubclass(kind, torch.Tensor) or _is_one_of(kind, PLAIN):
        return None
    if issubclass(kind, dict):
        return True, sorted(dict.items(value), key=_by_key)
    if issubclass(kind, list):
        return False, list(enumerate(list.__iter__(value)))
    if issubclass(kind, tuple):
        return False, list(enumerate(tuple.__iter__(value)))
    if _registered and kind in _registered:
        return _of_registered(value)
    fields = next((entries[_FIELDS] for entries in _class_entries(kind) if _FIELDS in entries), None)
    if type(fields) is not dict:
        return None
    names = [name for name, entry in fields.items() if type(entry) is dataclasses.Field and _is_kept(entry)]
    return True, sorted(((name, _attribute(value, name)) for name in names), key=_by_key)


def _of_registered(value: Any) -> tuple[bool, Sequence[tuple[Any, Any]]]:
    children, _ = _registered[type(value)].flatten_fn(value)
    parts = list(children)
    how, keys = keys_of(value, _registered[type(value)], len(parts))
    pairs = list(zip(keys, parts, strict=True))
    return (False, pairs) if how == "list" else (True, sorted(pairs, key=_by_key))


def _is_kept(entry: Any) -> bool:
    """Not what is of the class, or of its constructor alone."""
    return entry._field_type is dataclasses._FIELD  # type: ignore[attr-defined]


def _attribute(value: Any, name: str) -> Any:
    """As it is kept, in the object's own dict or slot, whatever its class would say."""
    for entries in _class_entries(type(value)):
        if type(kept := entries.get("__dict__")) is types.GetSetDescriptorType and name in (own := kept.__get__(value)):
            return own[name]
        if type(slot := entries.get(name)) is types.MemberDescriptorType:
            return slot.__get__(value)
    return None


def _class_entries(kind: type) -> list[Mapping[str, Any]]:
    """What a class and those that it is made of define, by the means of `type` alone."""
    return [_ENTRIES.__get__(each) for each in _BASES.__get__(kind)]


def _by_key(pair: tuple[Any, Any]) -> str:
    return _key(pair[0])


def _key(key: Any) -> str:
    return repr(key) if _is_one_of(type(key), PLAIN) else f"<{type(key).__name__}>"
