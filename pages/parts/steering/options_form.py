"""A form made of the described options of a strategy: a field for each, with its help, limits and default."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import EngineError
from engine.search.methods.options import Option, Value
from pages.parts import number_field, wording

IN_A_ROW = 3
WHEN = {"auto": "", "from": "from {step} …", "off": "never"}
SWITCH: Mapping[bool | None, str] = {None: "automatic", True: "yes", False: "no"}
Place = Callable[[], DeltaGenerator]


def draw(
    options: Sequence[Option], name: str, start: Mapping[str, Value], depths: int, step: str, wrong: list[str]
) -> dict[str, Value]:
    """The fields, filled in with `start`; the values that they have. `name` keeps the keys of two such forms apart.

    `depths`: of the run, to which the options that are a step index are limited; `step`: what the method calls one.
    What is wrong with a number is told and added to `wrong`.
    """
    values: dict[str, Value] = {}
    free: list[DeltaGenerator] = []

    def place() -> DeltaGenerator:
        if not free:
            free.extend(st.columns(IN_A_ROW))
        return free.pop(0)

    for option in options:
        value = _usable(option, start.get(option.name, option.default))
        key = f"option:{name}:{option.name}:{value}"
        if option.choices:
            free.clear()
            values[option.name] = _choice(option, value, key, place, wrong)
        elif option.is_index:
            free.clear()
            values[option.name] = _index(option, value, key, depths, step, wrong)
        else:
            values[option.name] = _field(option, value, key, place(), wrong)
    return values


def _usable(option: Option, value: Value) -> Value:
    """The value, or the default for one that it could have in an earlier version of its strategy."""
    try:
        option.check(value)
    except EngineError:
        return option.default
    return value


def _choice(option: Option, value: Value, key: str, place: Place, wrong: list[str]) -> Value:
    """One of a closed set; the number that belongs to a choice stands in the row below."""
    labels: dict[str | None, str] = {None: option.automatic} if "None" in option.types else {}
    labels |= {choice.value: choice.label for choice in option.choices}
    start = None if value is None else str(value).partition("=")[0]
    start = str(value) if str(value) in labels else start
    chosen = text = st.selectbox(
        option.label, list(labels), index=list(labels).index(start), format_func=labels.__getitem__, key=key,
        help=option.about,
    )  # fmt: skip
    for choice in option.choices:
        if not choice.counts:
            continue
        current = next(
            (v for v in (value, option.default) if str(v).startswith(f"{choice.value}=")),
            f"{choice.value}={choice.usual or 1}",
        )
        number = number_field.draw(
            place(), choice.counts, f"{key}:{choice.value}", int(str(current).partition("=")[2]), 1,
            wrong if chosen == choice.value else [], disabled=chosen != choice.value,
        )  # fmt: skip
        text = f"{choice.value}={number}" if chosen == choice.value else text
    return text


def _index(option: Option, value: Value, key: str, depths: int, step: str, wrong: list[str]) -> Value:
    """A first step index of the run, or none of them."""
    current = int(value) if isinstance(value, int) else None
    names = {"auto": option.automatic} | {name: words.format(step=step) for name, words in WHEN.items() if words}
    if "None" not in option.types:
        del names["auto"]
    first = "auto" if current is None else "from" if current <= depths else "off"
    chosen = st.segmented_control(
        option.label, list(names), format_func=names.__getitem__, default=first, required=True, key=key,
        help=option.about,
    )  # fmt: skip
    if chosen == "auto":
        return None
    if chosen == "off":
        return depths + 1
    least = max(int(option.least or 0), 1)
    at = current if current is not None and least <= current <= depths else min(3, depths)
    words = wording.capital(option.about)
    slot = st.container()
    return number_field.draw(slot, words, f"{key}:first", max(at, least), least, wrong, max(depths, least))


def _field(option: Option, value: Value, key: str, at: DeltaGenerator, wrong: list[str]) -> Value:
    """A number, a switch or a text."""
    is_optional, about = "None" in option.types, option.about
    if "bool" in option.types and not is_optional:
        return bool(at.checkbox(option.label, bool(value), key=key, help=about))
    if "bool" in option.types:
        words = {**SWITCH, None: option.automatic}
        start = None if value is None else bool(value)
        return at.selectbox(option.label, list(words), list(words).index(start), words.__getitem__, key=key, help=about)
    if "str" in option.types:
        hint = option.automatic if is_optional else None
        text = at.text_input(option.label, "" if value is None else str(value), key=key, help=about, placeholder=hint)
        return None if is_optional and not text else text
    look: dict[str, Any] = {"help": about, "placeholder": option.automatic or None}
    if "float" in option.types:
        least = None if option.least is None else float(option.least)
        given = None if value is None else float(value)
        return number_field.draw(at, option.label, key, given, least, wrong, format="%g", **look)
    lowest, current = None if option.least is None else int(option.least), None if value is None else int(value)
    number = number_field.draw(at, option.label, key, current, lowest, wrong, step=1, **look)
    return None if number is None else int(number)
