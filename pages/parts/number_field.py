"""A field for a number that says when what was typed is not valid. Streamlit's own bounds would keep the last valid
number without a word, and a run would start with that."""

from __future__ import annotations

import math
from typing import Any

from streamlit.delta_generator import DeltaGenerator

from pages.parts import wording


def draw(
    at: DeltaGenerator, label: str, key: str, value: float | None, least: float | None, wrong: list[str],
    most: float | None = None, **look: Any,
) -> float | None:  # fmt: skip
    """The number; a whole one where `value` or `least` is an int. None where the field is empty, which it may be when
    it begins so. One that is not valid is told under the field and added to `wrong`; then the start value counts."""
    is_whole = isinstance(value if value is not None else least, int)
    number = at.number_input(label, value=value, key=key, step=look.pop("step", 1 if is_whole else None), **look)
    if number is None or is_within(number, least, most):
        return number
    wrong.append(sentence(label, f"{number:g}", is_whole, least, most, value is None))
    at.error(wording.plain(wrong[-1]))
    return value


def draw_typed(
    at: DeltaGenerator, label: str, key: str, start: str, least: float | None, wrong: list[str],
    most: float | None = None, *, may_be_empty: bool = False, **look: Any,
) -> float | None:  # fmt: skip
    """The number of a field where it counts while it is typed, so that a button goes by what can be read there: None
    where the field is empty or not valid."""
    text = at.text_input(label, start, key=key, live=True, **look)
    return None if may_be_empty and not text.strip() else take(at, label, text, least, wrong, most, may_be_empty)


def take(
    at: DeltaGenerator, label: str, text: str, least: float | None, wrong: list[str], most: float | None,
    may_be_empty: bool,
) -> float | None:  # fmt: skip
    """The number that stands in a field; None where it is not valid, which is said under it and added to `wrong`."""
    number = read(text, least, most)
    if number is None:
        given = f"“{text.strip()}”" if text.strip() else "an empty field"
        wrong.append(sentence(label, given, isinstance(least, int), least, most, may_be_empty))
        at.error(wording.plain(wrong[-1]))
    return number


def read(text: str, least: float | None, most: float | None) -> float | None:
    """The number that a text is, when it lies within its bounds; a whole one where the lower bound is an int."""
    try:
        number = float(text)
    except ValueError:
        return None
    if not is_within(number, least, most):
        return None
    return None if isinstance(least, int) and not number.is_integer() else number


def is_within(number: float, least: float | None, most: float | None) -> bool:
    """Whether it lies within its bounds; None is no bound."""
    return math.isfinite(number) and (least is None or number >= least) and (most is None or number <= most)


def sentence(
    label: str, given: str, is_whole: bool, least: float | None, most: float | None, may_be_empty: bool
) -> str:
    """What is wrong with what was given, and what would do."""
    bounds = "" if least is None else f" from {least:g}" + ("" if most is None else f" to {_short(most)}")
    empty = ", or leave the field empty" if may_be_empty else ""
    kind = "a whole number" if is_whole else "a number"
    return f"{label}: {given} is not valid. Enter {kind}{bounds or ' that is finite'}{empty}."


def _short(number: float) -> str:
    return wording.count(int(number)) if number == int(number) else f"{number:g}"
