"""Settings that belong to one strategy: a frozen record whose fields say what they are and how far they may go.

The command line builds its options from such a record, a run keeps the values in run.json as `strategy_options`.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from engine.errors import EngineError

T = TypeVar("T")
Value = str | int | float | bool | None


def option(default: Any, about: str, *, least: float | None = None, check: Callable[[Any], None] | None = None) -> Any:
    """A field of such a record. `check` raises EngineError for a value that makes no sense."""
    return dataclasses.field(default=default, metadata={"about": about, "least": least, "check": check})


@dataclass(frozen=True, slots=True)
class NoOptions:
    """Of a strategy that has none."""


def names(kind: type[Any]) -> tuple[str, ...]:
    """The options of a strategy by name."""
    return tuple(field.name for field in dataclasses.fields(kind))


def about(kind: type[Any], name: str) -> str:
    """What an option is, with its default."""
    field = next(one for one in dataclasses.fields(kind) if one.name == name)
    default = "" if field.default is None else f" (default {field.default})"
    return f"{field.metadata.get('about', name.replace('_', ' '))}{default}"


def read(kind: type[T], values: Mapping[str, Value]) -> T:
    """The record with these values, its defaults for the rest.

    Raises:
        EngineError: no such option, or a value that it cannot have; the message says what would do.
    """
    hints = typing.get_type_hints(kind)
    fields = {one.name: one for one in dataclasses.fields(typing.cast(Any, kind))}
    if unknown := [name for name in values if name not in fields]:
        raise EngineError(
            f"unknown strategy option {unknown[0]!r}: use {', '.join(fields) or 'none, it has no options'}"
        )
    return kind(**{name: _checked(fields[name], hints[name], value) for name, value in values.items()})


def parse(kind: type[Any], words: Sequence[str]) -> dict[str, Value]:
    """Values from words such as `rounds=10`.

    Raises:
        EngineError: as `read`, or a word of another form.
    """
    hints, found = typing.get_type_hints(kind), dict[str, Value]()
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name not in hints:
            raise EngineError(f"expected NAME=VALUE with one of {', '.join(hints) or 'no options'}, got {word!r}")
        found[name] = _value(hints[name], text, name)
    read(kind, found)
    return found


def _types(hint: Any) -> tuple[type, ...]:
    return typing.get_args(hint) or (hint,)


def _value(hint: Any, text: str, name: str) -> Value:
    for kind in _types(hint):
        try:
            if kind is bool and text in ("true", "false"):
                return text == "true"
            if kind in (int, float, str):
                value: Value = kind(text)
                return value
        except ValueError:
            continue
    raise EngineError(f"strategy option {name} does not take {text!r}")


def _checked(field: dataclasses.Field[Any], hint: Any, value: Value) -> Value:
    kinds = _types(hint)
    is_number = isinstance(value, int) and not isinstance(value, bool) and float in kinds
    if type(value) not in kinds and not is_number:
        raise EngineError(f"strategy option {field.name} does not take {value!r}")
    least, check = field.metadata.get("least"), field.metadata.get("check")
    if least is not None and isinstance(value, (int, float)) and value < least:
        raise EngineError(f"strategy option {field.name} must be at least {least:g}, not {value!r}")
    if check is not None:
        check(value)
    return value
