"""Records to JSON and back by their type hints. Knows no record by name.

Unknown keys are ignored and missing ones take their default, so an older reader survives a newer journal.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import types
import typing
from collections.abc import Mapping
from typing import Any


class DecodeError(ValueError):
    """JSON that does not fit the record it is read as."""


def to_plain(value: object) -> Any:
    """Turn records, enums, tuples and mappings into what `json.dumps` accepts."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(k): to_plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(v) for v in value]
    return value


def dumps(value: object) -> str:
    """One line of JSON. Non-finite floats are written as NaN and Infinity, which this module reads back."""
    return json.dumps(to_plain(value), ensure_ascii=False, separators=(",", ":"))


def from_plain(kind: Any, value: Any) -> Any:
    """Build `kind` from plain JSON.

    Raises:
        DecodeError: the value does not fit the type.
    """
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _optional(kind, value)
    if origin is tuple:
        item = typing.get_args(kind)[0]
        fixed = typing.get_args(kind)
        items = fixed if len(fixed) > 1 and fixed[1] is not Ellipsis else (item,) * len(value)
        return tuple(from_plain(t, v) for t, v in zip(items, value, strict=True))
    if origin is not None:
        return dict(value)
    if dataclasses.is_dataclass(kind):
        return _record(typing.cast(type, kind), value)
    return _scalar(kind, value)


def _optional(kind: Any, value: Any) -> Any:
    if value is None:
        return None
    options = [t for t in typing.get_args(kind) if t is not type(None)]
    return from_plain(options[0], value) if len(options) == 1 else value


def _scalar(kind: Any, value: Any) -> Any:
    try:
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return kind(value)
    except ValueError as error:
        raise DecodeError(f"{value!r} is no {kind.__name__}") from error
    if kind is float and isinstance(value, int):
        return float(value)
    if kind is Any or isinstance(value, kind):
        return value
    raise DecodeError(f"expected {kind.__name__}, got {value!r}")


def _record(kind: type, value: Any) -> Any:
    if not isinstance(value, dict):
        raise DecodeError(f"expected an object for {kind.__name__}, got {value!r}")
    hints = _hints(kind)
    try:
        return kind(**{name: from_plain(hint, value[name]) for name, hint in hints.items() if name in value})
    except (TypeError, ValueError) as error:
        raise DecodeError(f"{kind.__name__}: {error}") from error


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)
