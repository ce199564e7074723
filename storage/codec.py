"""Records to JSON and back by their type hints, which msgspec reads. Knows no record by name.

Unknown keys are ignored and missing ones take their default, so an older reader survives a newer journal. The text
itself is left to `json`: msgspec's has neither NaN nor lone surrogates, and journals have both.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import re
import threading
import types
import typing
from collections.abc import Mapping
from typing import Any

import msgspec

from storage import untrusted
from storage.untrusted import Limits, UntrustedError

# Digits as many as Python takes: most lines are shorter, and need not be looked through for them.
LINE = Limits(most_bytes=untrusted.MOST_LINE_BYTES, most_digits=4300)
LATEST = 32_503_680_000.0
"""The year 3000, in seconds since the epoch. A later moment is damage, as one before the epoch is."""

EpochSeconds = typing.Annotated[float, msgspec.Meta(ge=0.0, le=LATEST)]
"""Seconds since the epoch, within that."""

_is_reading = threading.Lock()
_read_types: set[Any] = set()


class DecodeError(UntrustedError):
    """JSON that does not fit the record it is read as."""


def to_plain(value: object) -> Any:
    """Turn records, enums and mappings into what `json.dumps` accepts. Tuples stay tuples.

    Raises:
        TypeError: it holds something that JSON has no word for.
    """
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_as_dict)


def _as_dict(value: object) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"JSON has no word for {value!r}")


def dumps(value: object) -> str:
    """One line of JSON. Non-finite floats are written as NaN and Infinity, which this module reads back."""
    return json.dumps(to_plain(value), ensure_ascii=False, separators=(",", ":"))


def from_plain(kind: Any, value: Any) -> Any:
    """Build `kind` from plain JSON.

    Raises:
        DecodeError: the value does not fit the type.
    """
    # msgspec 0.22 leaves what it reads of a type on the type before that is complete: a second thread that meets it
    # then ends the process.
    if kind not in _read_types:
        with _is_reading:
            msgspec.json.Decoder(kind)
            _read_types.add(kind)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise DecodeError(_why(kind, value, f"{error}")) from error


def read_line(kind: Any, line: bytes) -> Any:
    """Build `kind` from a line of JSON; as `dumps` and `from_plain`, and several times as fast.

    Raises:
        DecodeError: it is no JSON, or does not fit the type.
    """
    try:
        untrusted.check_json(line, "the line", LINE)
        return _decoder(kind).decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass  # NaN or a lone surrogate, or why not
    except UntrustedError as error:
        raise DecodeError(f"{error}") from error
    try:
        return from_plain(kind, untrusted.json_value(line, "the line", LINE))
    except DecodeError:
        raise
    except UntrustedError as error:
        raise DecodeError(f"{error}") from error


@functools.cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    with _is_reading:
        return msgspec.json.Decoder(kind)


def _why(kind: Any, value: Any, message: str) -> str:
    """What does not fit, behind the names of the records that it stands in. msgspec names neither type nor value."""
    records = ""
    message, path = typing.cast(re.Match[str], re.fullmatch(r"(.*?)(?: - at `\$(.*)`)?", message, re.DOTALL)).groups("")
    for name, index in re.findall(r"\.(\w+)|\[(\d+)\]", path.partition("[...]")[0]):
        if name:
            records += f"{kind.__name__}: "
            kind, value = typing.get_type_hints(kind)[name], value[name]
        else:
            inner = typing.get_args(kind)
            kind, value = inner[0 if inner[-1] is Ellipsis else int(index)], value[int(index)]
        kind = _without_none(kind)
    if not isinstance(kind, type) or typing.get_origin(kind):
        return f"{records}{message}"
    shown = repr(value)[:200]
    if issubclass(kind, enum.Enum):
        return f"{records}{shown} is not a {kind.__name__}"
    if kind is float and type(value) in (int, float):
        return f"{records}{shown} is out of range"
    if not dataclasses.is_dataclass(kind):
        return f"{records}expected {kind.__name__}, got {shown}"
    if not isinstance(value, dict):
        return f"{records}expected an object for {kind.__name__}, got {shown}"
    return f"{records}{kind.__name__}: {message}"


def _without_none(kind: Any) -> Any:
    options = [option for option in typing.get_args(kind) if option is not type(None)]
    is_union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    return options[0] if is_union and len(options) == 1 else kind
