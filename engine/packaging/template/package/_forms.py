"""How what a module is given, and what it gives, is put together: tensors by number, and all else as it is.

A form is lists and plain values alone, so that it can stand in a table: `["tuple", [["tensor", 0], ["plain", None]]]`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

TENSOR, PLAIN, DTYPE, TUPLE, LIST, DICT, UNUSED = "tensor", "plain", "dtype", "tuple", "list", "dict", "unused"
Form = list[Any]


class NoForm(Exception):
    """Something stands in it that cannot be told in a table; the message names its class."""


def form_of(value: Any, tensors: list[torch.Tensor]) -> Form:
    """The form of a value. Its tensors are added to `tensors`, and numbered by their places there.

    Raises:
        NoForm: it holds an object of another kind.
    """
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return [TENSOR, len(tensors) - 1]
    if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
        return [PLAIN, value]
    if isinstance(value, torch.dtype):
        return [DTYPE, str(value)[6:]]
    if type(value) in (tuple, list):
        return [TUPLE if type(value) is tuple else LIST, [form_of(part, tensors) for part in value]]
    if type(value) is dict and all(type(name) is str for name in value):
        return [DICT, [[name, form_of(part, tensors)] for name, part in value.items()]]
    raise NoForm(type(value).__name__)


def renumbered(form: Form, numbers: Mapping[int, int]) -> Form:
    """The form with other numbers; a tensor that has none there is not used."""
    kind = form[0]
    if kind == TENSOR:
        return [TENSOR, numbers[form[1]]] if form[1] in numbers else [UNUSED]
    if kind in (TUPLE, LIST):
        return [kind, [renumbered(part, numbers) for part in form[1]]]
    if kind == DICT:
        return [kind, [[name, renumbered(part, numbers)] for name, part in form[1]]]
    return form


def take(form: Form, value: Any, tensors: dict[int, torch.Tensor]) -> bool:
    """Whether a value has this form; its tensors are put into `tensors` by their numbers."""
    kind = form[0]
    if kind == TENSOR:
        if isinstance(value, torch.Tensor):
            tensors[form[1]] = value
        return isinstance(value, torch.Tensor)
    if kind == UNUSED:
        return isinstance(value, torch.Tensor)
    if kind == PLAIN:
        return type(value) is type(form[1]) and bool(value == form[1])
    if kind == DTYPE:
        return isinstance(value, torch.dtype) and str(value)[6:] == form[1]
    if kind == DICT:
        return (
            type(value) is dict
            and len(value) == len(form[1])
            and all(name in value and take(part, value[name], tensors) for name, part in form[1])
        )
    return (
        type(value) is (tuple if kind == TUPLE else list)
        and len(value) == len(form[1])
        and all(take(part, given, tensors) for part, given in zip(form[1], value, strict=True))
    )


def put(form: Form, tensors: Sequence[torch.Tensor]) -> Any:
    """A value of this form with these tensors.

    Raises:
        NoForm: it holds a tensor that is not used, which nobody has.
    """
    kind = form[0]
    if kind == TENSOR:
        return tensors[form[1]]
    if kind == PLAIN:
        return form[1]
    if kind == DTYPE:
        return getattr(torch, form[1])
    if kind == UNUSED:
        raise NoForm("a tensor that is not used")
    if kind == DICT:
        return {name: put(part, tensors) for name, part in form[1]}
    parts = [put(part, tensors) for part in form[1]]
    return tuple(parts) if kind == TUPLE else parts
