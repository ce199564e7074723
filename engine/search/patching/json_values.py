"""JSON values in a text that holds more than JSON, read in time in proportion to its length. Knows no edits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

WINDOW, MIN_COST = 4096, 64  # characters
DEEPEST = 50  # what is asked for has at most five levels
LONGEST_WHOLE = 18  # digits; a longer number is read as a float


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONGEST_WHOLE else float(digits)


_DECODER = json.JSONDecoder(strict=False, parse_int=_whole)


def values(text: str, opening: re.Pattern[str]) -> Iterator[tuple[Any, int]]:
    """Each value that begins where `opening` matches and not within one before it, and its place."""
    position, patience = 0, 4 * len(text) + 10_000  # what failed readings may cost in all
    while patience > 0 and (match := opening.search(text, position)) is not None:
        value, length, cost = read_at(text, match.start())
        position, patience = match.start() + max(length, 1), patience - cost
        if value is not None:
            yield value, match.start()


def read_at(text: str, start: int) -> tuple[Any, int, int]:
    """(value, its length, what a failure cost in characters). No JSON begins here where the length is 0, and none that
    is of use where the value is None: it is too deep.

    Trap: the decoder's error counts the lines before it, so it must not be shown the whole text each time.
    """
    window = WINDOW
    while True:
        piece = text[start : start + window]
        try:
            value, length = _DECODER.raw_decode(piece)
            return value if _is_shallow(value) else None, length, 0
        except json.JSONDecodeError as error:
            is_cut = error.pos >= len(piece) - 16 or error.msg.startswith("Unterminated")
            if not is_cut or start + window >= len(text):
                return None, 0, max(error.pos, window if window > WINDOW else MIN_COST)
        except RecursionError:
            return None, 0, window
        window *= 8


def _is_shallow(value: Any) -> bool:
    """Whether what walks through the value will come back."""
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for outer in level if isinstance(outer, dict | list) for inner in _inner(outer)]
        if not level:
            return True
    return False


def _inner(value: dict[str, Any] | list[Any]) -> Iterator[Any]:
    return iter(value.values() if isinstance(value, dict) else value)
