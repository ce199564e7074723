"""Which lines of a kernel's own source the compiler complains about. Pure; knows how both toolchains name a line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pages.parts.widgets import code

AROUND = 2
_OWN = re.compile(r"\bcandidate\.py[:(](\d+)")
_INNER = re.compile(r"\b(?:cpp|cuda)_sources\[\d+\][:(](\d+)")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines `first`.. (from 1) of a source; `marked` are those the compiler named."""

    first: int
    lines: tuple[str, ...]
    marked: tuple[int, ...]


def named(diagnostics: str, source: str) -> list[int]:
    """Line numbers of the module, from 1, in the order they are named; each once.

    A line of an inner source is told apart only where the module has one C++ text: else nobody knows which is meant.
    """
    count = source.count("\n") + 1
    starts = code.cpp_starts(source)
    found = []
    for text in diagnostics.splitlines():
        found += [int(match[1]) for match in _OWN.finditer(text)]
        if len(starts) == 1:
            found += [starts[0] + int(match[1]) - 1 for match in _INNER.finditer(text)]
    return [line for line in dict.fromkeys(found) if 1 <= line <= count]


def excerpts(lines: Sequence[int], source: str, around: int = AROUND) -> list[Excerpt]:
    """The named lines with those near by, in the order of the source; what touches is one excerpt."""
    text = source.split("\n")
    groups: list[list[int]] = []
    for line in sorted(lines):
        if groups and line - groups[-1][-1] <= 2 * around + 1:
            groups[-1].append(line)
        else:
            groups.append([line])
    found = []
    for group in groups:
        first, last = max(1, group[0] - around), min(len(text), group[-1] + around)
        found.append(Excerpt(first, tuple(text[first - 1 : last]), tuple(group)))
    return found
