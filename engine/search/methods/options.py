"""Settings that belong to one strategy: a frozen record whose fields say what they are and how far they may go.

The command line and the form of a new run are built from a description of such a record, in plain values that also
travel from another process; a run keeps the values in run.json as `strategy_options`. Knows no strategy.
"""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from engine.errors import EngineError
from storage.run.method_words import PLAIN
from storage.run.saved_models import RECORDED

T = TypeVar("T")
Value = str | int | float | bool | None
TYPES: Mapping[type, str] = {int: "int", float: "float", bool: "bool", str: "str", type(None): "None"}
FORMS = {"int": "a whole number", "float": "a number", "bool": "yes or no", "str": "a text", "None": "none"}
BOOLEANS = {"yes": True, "true": True, "no": False, "false": False}


@dataclass(frozen=True, slots=True)
class Choice:
    """A value of a closed set and how people read it. With `counts`, which says what the number K after it counts, from
    1 on, the value is `value=K`; with a `usual` number too, `value` alone means that one."""

    value: str
    label: str
    counts: str = ""
    usual: int | None = None

    @property
    def form(self) -> str:
        """How it is written."""
        return f"{self.value}[=K]" if self.usual else f"{self.value}=K" if self.counts else self.value


@dataclass(frozen=True, slots=True)
class Option:
    """One option, described. `types` are names of `TYPES`; "None" among them stands for `automatic`.

    `recorded` is the default where recorded replies are replayed, None where it is no other than `default`. `is_index`
    tells that the value is the first step index of the run at which something happens.
    """

    name: str
    label: str
    about: str
    default: Value
    types: tuple[str, ...]
    least: float | None = None
    choices: tuple[Choice, ...] = ()
    automatic: str = "automatic"
    recorded: Value = None
    is_index: bool = False

    def default_for(self, model: str) -> Value:
        """What it is with this model unless somebody says otherwise."""
        return self.recorded if model == RECORDED and self.recorded is not None else self.default

    def limits(self) -> str:
        """What it can be, in words; empty where its type says it."""
        if self.choices:
            return ", ".join(f"{choice.form} ({choice.label})" for choice in self.choices)
        return "" if self.least is None else f"at least {self.least:g}"

    def help(self) -> str:
        """What it is, what it can be and its default, on one line."""
        limits = f": {self.limits()}" if self.choices else f", {self.limits()}" if self.limits() else ""
        default = self.shown(self.default) if self.default is None or "bool" in self.types else self.default
        return f"{self.about}{limits} (default {default})"

    def shown(self, value: Value, step: str = PLAIN.step) -> str:
        """A value as people read it; `step` is what the method calls a step index."""
        if value is None or isinstance(value, bool):
            return self.automatic if value is None else "yes" if value else "no"
        base, _, number = str(value).partition("=")
        for choice in self.choices:
            if choice.value == (base if choice.counts else value):
                return (
                    f"{choice.label} ({choice.counts.lower()}: {number or choice.usual})"
                    if choice.counts
                    else choice.label
                )
        return f"from {step} {value}" if self.is_index else str(value)

    def form(self) -> str:
        """What is written on a command line for it, in words."""
        return self.limits() if self.choices else " or ".join(FORMS[kind] for kind in self.types)

    def check(self, value: Value) -> None:
        """See that it can have this value.

        Raises:
            EngineError: it cannot; the message says what would do.
        """
        kind = TYPES.get(type(value), "")
        if kind not in self.types and not (kind == "int" and "float" in self.types):
            raise EngineError(f"strategy option {self.name} does not take {value!r}: use {self.form()}")
        if self.least is not None and isinstance(value, (int, float)) and not value >= self.least:
            raise EngineError(f"strategy option {self.name} must be at least {self.least:g}, not {value!r}")
        if self.choices and value is not None and not any(_fits(choice, str(value)) for choice in self.choices):
            raise EngineError(f"unknown {self.name.replace('_', ' ')} {value!r}: use {self.limits()}")

    def read(self, text: str) -> Value:
        """A value from a word of a command line.

        Raises:
            EngineError: it cannot have that value.
        """
        for kind, convert in (("int", int), ("float", float), ("str", str)):
            if "bool" in self.types and text in BOOLEANS:
                return BOOLEANS[text]
            if "None" in self.types and text == "none":
                return None
            try:
                if kind in self.types:
                    value: Value = convert(text)
                    self.check(value)
                    return value
            except ValueError:
                continue
        raise EngineError(f"strategy option {self.name} does not take {text!r}: use {self.form()}")


def option(
    default: Value, about: str, *, label: str = "", least: float | None = None, choices: Sequence[Choice] = (),
    automatic: str = "automatic", recorded: Value = None, is_index: bool = False,
) -> Any:  # fmt: skip
    """A field of a record of options; its words are those of `Option`. `about` begins small and has no full stop."""
    metadata = {"about": about, "least": least, "choices": tuple(choices), "automatic": automatic}
    if label:
        metadata["label"] = label
    return dataclasses.field(default=default, metadata=metadata | {"recorded": recorded, "is_index": is_index})


def described(kind: type[Any]) -> tuple[Option, ...]:
    """The options of a record in the order of its fields.

    Raises:
        EngineError: a field has no default, or holds something that no option can be.
    """
    hints = typing.get_type_hints(kind)
    return tuple(_described(field, hints[field.name]) for field in dataclasses.fields(kind))


def _described(field: dataclasses.Field[Any], hint: Any) -> Option:
    types = tuple(TYPES.get(kind, str(kind)) for kind in typing.get_args(hint) or (hint,))
    if field.default is dataclasses.MISSING or not set(types) <= set(TYPES.values()):
        raise EngineError(f"option {field.name} needs a default and a type of {', '.join(TYPES.values())}")
    words = field.name.replace("_", " ")
    metadata: dict[str, Any] = {"label": words.capitalize(), "about": words, **field.metadata}
    described = Option(name=field.name, default=field.default, types=types, **metadata)
    described.check(field.default)
    return described


def complete(options: Sequence[Option], values: Mapping[str, Value]) -> dict[str, Value]:
    """These values, and the defaults of the rest.

    Raises:
        EngineError: no such option, or a value that it cannot have; the message says what would do.
    """
    by_name = {declared.name: declared for declared in options}
    for name, value in values.items():
        if name not in by_name:
            raise EngineError(
                f"unknown strategy option {name!r}: use {', '.join(by_name) or 'none, it has no options'}"
            )
        by_name[name].check(value)
    return {declared.name: declared.default for declared in options} | dict(values)


def labelled(options: Sequence[Option], values: Mapping[str, Value], step: str = PLAIN.step) -> list[tuple[str, str]]:
    """(label, value) as people read them, defaults included; by its name where an option is not described."""
    by_name = {declared.name: declared for declared in options}
    rest = {name: value for name, value in values.items() if name not in by_name}
    pairs = [
        (declared.label, declared.shown(values.get(name, declared.default), step)) for name, declared in by_name.items()
    ]
    return pairs + [(name.replace("_", " ").capitalize(), str(value)) for name, value in rest.items()]


def read(kind: type[T], values: Mapping[str, Value]) -> T:
    """The record with these values, its defaults for the rest.

    Raises:
        EngineError: as `complete`.
    """
    return kind(**complete(described(typing.cast("type[Any]", kind)), values))


def read_often(kind: type[T], values: Mapping[str, Value]) -> T:
    """The same for a strategy that reads its settings at each step.

    Raises:
        EngineError: as `complete`.
    """
    settings: T = _read_once(typing.cast("Any", kind), tuple(sorted(values.items())))
    return settings


@functools.lru_cache(maxsize=256)
def _read_once(kind: Any, values: tuple[tuple[str, Value], ...]) -> Any:
    return read(kind, dict(values))


def parse(options: Sequence[Option], words: Sequence[str]) -> dict[str, Value]:
    """Values from words such as `rounds=10`.

    Raises:
        EngineError: as `complete`, or a word of another form.
    """
    by_name, values = {declared.name: declared for declared in options}, dict[str, Value]()
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name not in by_name:
            raise EngineError(f"expected NAME=VALUE with one of {', '.join(by_name) or 'no options'}, got {word!r}")
        values[name] = by_name[name].read(text)
    return values


def _fits(choice: Choice, text: str) -> bool:
    base, _, number = text.partition("=")
    if not choice.counts or (choice.usual and text == choice.value):
        return text == choice.value
    return base == choice.value and number.isascii() and number.isdecimal() and not number.startswith("0")
