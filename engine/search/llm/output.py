"""What a program printed, read as a reply: without the escapes of a terminal, the reply found in it, and what it says
that it cost. Knows no process."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from storage import untrusted
from storage.run.saved_models import Program, is_path
from storage.untrusted import Limits, UntrustedError

MOST_TOKENS = 10**9
MOST_USD = 1e6
LIMITS = Limits(most_bytes=16 << 20)
_LONGEST_ESCAPE = 4096
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]+[0-~]|\x1b[0-Z\\^-~]")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\*)\]")


class PlainText:
    """Takes the escapes of a terminal (colours, titles, links) out of a text that comes in pieces."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """What of the text so far is certain to be no part of an escape and was not given out before."""
        text = _ESCAPE.sub("", self._held + piece)
        begin = text.find("\x1b")
        if begin < 0 or len(text) - begin > _LONGEST_ESCAPE:
            begin = len(text)
        self._held = text[begin:]
        return text[:begin]

    def rest(self) -> str:
        """What was held back: it turned out to be no escape."""
        held, self._held = self._held, ""
        return held

    @classmethod
    def whole(cls, text: str) -> str:
        """A whole text without escapes."""
        return _ESCAPE.sub("", text)


@dataclass(frozen=True, slots=True)
class Found:
    """What was read. None is unknown. `is_there` is False where the output has nothing that the reply is read from."""

    reply: str
    is_there: bool
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None


def read_output(program: Program, text: str, errors: str) -> Found:
    """The reply and the figures in what a program printed; figures are looked for on standard error too."""
    replies = (
        [value for value in _values(program.reply, text, "") if isinstance(value, str)] if program.reply else [text]
    )
    figures = [_figure(spec, text, errors) for spec in (program.input_tokens, program.output_tokens, program.cost_usd)]
    tokens = [None if value is None or value > MOST_TOKENS else int(value) for value in figures[:2]]
    cost = figures[2] if figures[2] is not None and figures[2] <= MOST_USD else None
    return Found(replies[-1] if replies else "", bool(replies), tokens[0], tokens[1], cost)


def _figure(spec: str, text: str, errors: str) -> float | None:
    """A number: all that paths lead to is added up, of a pattern the last match counts; None where there is none."""
    if not spec:
        return None
    if not is_path(spec):
        numbers = [number for value in _values(spec, text, errors) if (number := _number(value)) is not None]
        return numbers[-1] if numbers else None
    parts = [path.strip() for path in spec.split(" + ")]
    numbers = [number for path in parts for value in _values(path, text, errors)
               if (number := _number(value)) is not None]  # fmt: skip
    return sum(numbers) if numbers else None


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value.replace(",", "").strip())
        except ValueError:
            return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) and value >= 0 else None


def _values(spec: str, text: str, errors: str) -> list[Any]:
    """What a JSON path or a pattern finds, in order."""
    if not is_path(spec):
        return [match[1] for part in (text, errors) for match in re.finditer(spec, part, re.MULTILINE) if match[1]]
    steps = [name or index for name, index in _STEP.findall(spec[1:])]
    return [value for document in _documents(text) for value in _at(document, steps)]


def _documents(text: str) -> Iterator[Any]:
    """The output as one JSON value, or else each of its lines that is one."""
    try:
        yield untrusted.json_value(text.encode("utf-8", "replace"), "the output", LIMITS)
        return
    except UntrustedError:
        pass
    for line in text.splitlines():
        if line.lstrip().startswith(("{", "[")):
            try:
                yield untrusted.json_value(line.encode("utf-8", "replace"), "the output", LIMITS)
            except UntrustedError:
                continue


def _at(value: Any, steps: Sequence[str]) -> Iterator[Any]:
    if not steps:
        yield value
        return
    step, rest = steps[0], steps[1:]
    inner: list[Any] = []
    if isinstance(value, dict):
        inner = [*value.values()] if step == "*" else [value[step]] if step in value else []
    elif isinstance(value, list):
        inner = value if step == "*" else value[int(step) : int(step) + 1] if step.isdecimal() else []
    for part in inner:
        yield from _at(part, rest)
