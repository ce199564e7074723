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
from collections.abc import Callable, Mapping
from typing import Any

Reader = Callable[[Any], Any]


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
    return _reader(kind)(value)


@functools.cache
def _reader(kind: Any) -> Reader:
    """What reads one type. Made once per type: a server reads hundreds of thousands of lines when it starts."""
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _optional(kind)
    if origin is tuple:
        return _items(typing.get_args(kind))
    if origin is not None:
        return dict
    if dataclasses.is_dataclass(kind):
        return _record(typing.cast(type, kind))
    return _member(kind) if isinstance(kind, type) and issubclass(kind, enum.Enum) else _scalar(kind)


def _optional(kind: Any) -> Reader:
    options = [t for t in typing.get_args(kind) if t is not type(None)]
    if len(options) != 1:
        return lambda value: value
    read = _reader(options[0])
    return lambda value: None if value is None else read(value)


def _items(kinds: tuple[Any, ...]) -> Reader:
    if len(kinds) > 1 and kinds[1] is not Ellipsis:
        readers = [_reader(kind) for kind in kinds]
        return lambda value: tuple(read(one) for read, one in zip(readers, value, strict=True))
    read_one = _reader(kinds[0])
    return lambda value: tuple(map(read_one, value))


def _member(kind: type[enum.Enum]) -> Reader:
    def read(value: Any) -> Any:
        try:
            return kind(value)
        except ValueError as error:
            raise DecodeError(f"{value!r} is not a {kind.__name__}") from error

    return read


def _scalar(kind: Any) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is kind or kind is Any:
            return value
        if kind is float and isinstance(value, int):
            return float(value)
        if isinstance(value, kind):
            return value
        raise DecodeError(f"expected {kind.__name__}, got {value!r}")

    return read


def _record(kind: type) -> Reader:
    readers: dict[str, Reader] = {}

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise DecodeError(f"expected an object for {kind.__name__}, got {value!r}")
        if not readers:  # not before: a record may hold records of its own kind
            readers.update((name, _reader(hint)) for name, hint in typing.get_type_hints(kind).items())
        try:
            return kind(**{name: field(value[name]) for name, field in readers.items() if name in value})
        except (TypeError, ValueError) as error:
            raise DecodeError(f"{kind.__name__}: {error}") from error

    return read
