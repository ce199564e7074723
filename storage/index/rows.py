"""Records as rows of the index. Knows no table."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from typing import Any

from storage import codec
from storage.codec import DecodeError

Row = dict[str, Any]
TableRow = tuple[str, Row]
StateRow = tuple[str, Row, bool]  # whether it is the first row of its key
LARGEST = 2**63 - 1


def fields_of(record: Any) -> Row:
    """A record's own fields; those that a table has no column for are left out when the row is written."""
    return {name: getattr(record, name) for name in _names(record.__class__)}


@functools.cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def storable(row: Mapping[str, Any]) -> Row:
    """The row with what DuckDB cannot take put right: sums of more than 64 bits are cut to that."""
    return {
        name: value if type(value) in _PLAIN or (type(value) is str and value.isascii()) else _storable(value)
        for name, value in row.items()
    }


_PLAIN = {type(None), float, bool}


def _storable(value: Any) -> Any:
    if value is None or isinstance(value, float):
        return value
    if isinstance(value, int):
        return max(-LARGEST - 1, min(LARGEST, value))
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, (tuple, list)):
        return [_storable(item) for item in value]
    if isinstance(value, Mapping):
        return _storable(json.dumps(dict(value), ensure_ascii=False))
    return _storable(codec.dumps(value)) if dataclasses.is_dataclass(value) else value


def check_numbers(event: Any) -> None:
    """
    Raises:
        DecodeError: an event of a step has a whole number of more than 64 bits, which no column can hold.
    """
    for value in fields_of(event).values() if hasattr(event, "step") else ():
        if isinstance(value, int) and not -LARGEST - 1 <= value <= LARGEST:
            raise DecodeError(f"{value} does not fit into 64 bits")
