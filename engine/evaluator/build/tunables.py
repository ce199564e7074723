"""Named numbers that a source declares open to tuning, and the source with others in their place. Knows text alone.

    constexpr int kTile = 64;  // tune: 32, 64, 128
    BLOCK = 64  # tune: 32, 64, 128

One declaration a line, in C++ or at the left margin of the Python file. What cannot be read is a remark, no failure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from storage.results.evaluation_results import Tunable

MOST_TUNABLES, MOST_CANDIDATES, LONGEST_LINE = 8, 16, 300
CPP_LINE = "constexpr int kTile = 64;  // tune: 32, 64, 128"
PYTHON_LINE = "TILE = 64  # tune: 32, 64, 128"
EXAMPLES = f"`{CPP_LINE}`, or in Python `{PYTHON_LINE}`"
REMARK = "tunable, line"  # how every remark begins
# A text is untrusted: longer lines are not read, which bounds what a pattern can cost.
_MARK = re.compile(r"(?://|#)\s*tune:")
_CPP = re.compile(r"[^=;/#\"']*\bconstexpr\b[^=;/#\"']*?\b([A-Za-z_]\w*)\s*=\s*(-?\d{1,9})[uUlL]{0,3}\s*;\s*\Z")
_PYTHON = re.compile(r"([A-Za-z_]\w*)\s*(?::[^=#]*)?=\s*(?:[\w.]*\bconstexpr\(\s*)?(-?\d{1,9})\s*\)?\s*\Z")
_NUMBER = re.compile(r"-?\d{1,9}")


@dataclass(frozen=True, slots=True)
class Declared:
    """What a source declares, in its order, and a sentence for each line that cannot be used."""

    tunables: tuple[Tunable, ...] = ()
    remarks: tuple[str, ...] = ()


def read(source: str) -> Declared:
    """The tunables of a source. The number that stands there counts as a candidate even where it is not listed."""
    tunables, remarks = dict[str, Tunable](), list[str]()
    twice = set[str]()
    for number, line in enumerate(source.split("\n"), 1):
        declaration = _place(line)
        if declaration is None:
            if len(line) <= LONGEST_LINE and _MARK.search(line):
                remarks.append(f"{REMARK} {number}: not read; write {EXAMPLES}, each on a line of its own")
            continue
        name, value = declaration[1], int(declaration[2])
        candidates, why = _candidates(line, value)
        if why:
            remarks.append(f"{REMARK} {number}: {name} {why}")
        elif name in tunables:
            twice.add(name)
            remarks.append(f"{REMARK} {number}: {name} is declared twice; neither is tuned")
        elif len(tunables) == MOST_TUNABLES:
            remarks.append(f"{REMARK} {number}: {name} is one more than the {MOST_TUNABLES} that are tuned")
        else:
            tunables[name] = Tunable(name, value, candidates)
    return Declared(tuple(tunable for name, tunable in tunables.items() if name not in twice), tuple(remarks))


def with_values(source: str, values: Mapping[str, int]) -> str:
    """The source with these numbers at its declarations; everything else as it is."""
    lines = source.split("\n")
    for number, line in enumerate(lines):
        declaration = _place(line)
        if declaration is not None and declaration[1] in values:
            lines[number] = f"{line[: declaration.start(2)]}{values[declaration[1]]}{line[declaration.end(2) :]}"
    return "\n".join(lines)


def _place(line: str) -> re.Match[str] | None:
    """Name and number of the declaration on a line."""
    mark = _MARK.search(line) if len(line) <= LONGEST_LINE else None
    if mark is None:
        return None
    head = line[: mark.start()]
    return _CPP.match(head) if mark[0].startswith("/") else _PYTHON.match(head)


def _candidates(line: str, value: int) -> tuple[tuple[int, ...], str]:
    """The numbers that a line lists, rising, with the one that it holds; or why they cannot be used."""
    listed = [text.strip() for text in line[_MARK.search(line).end() :].strip().rstrip(",").split(",")]  # type: ignore[union-attr]
    wrong = [text for text in listed if not _NUMBER.fullmatch(text)]
    if wrong:
        return (), f"lists {wrong[0]!r}, which is no whole number; separate numbers by commas and write nothing else"
    numbers = sorted({value, *map(int, listed)})
    if len(numbers) < 2:
        return (), "lists no other number than the one that it has"
    if len(numbers) > MOST_CANDIDATES:
        return (), f"lists {len(numbers)} numbers; list {MOST_CANDIDATES} at most"
    return tuple(numbers), ""
