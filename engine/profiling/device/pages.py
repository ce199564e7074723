"""Reads what Nsight Compute prints: the raw page (one row per launch) and the advice on the details page.

A value that is not there is left out, never zero. Units are told as the profiler prints them, in base units.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from storage import counters
from storage.records import Advice

_NUMBER = re.compile(r"^-?[\d,]+(?:\.\d+)?(?:[eE][+-]?\d+)?$")
# Base units, by the profiler's name for them: ours and the factor to it.
UNITS: Mapping[str, tuple[str, float]] = {
    "nsecond": ("s", 1e-9), "ns": ("s", 1e-9), "usecond": ("s", 1e-6), "us": ("s", 1e-6), "msecond": ("s", 1e-3),
    "ms": ("s", 1e-3), "second": ("s", 1.0), "s": ("s", 1.0), "byte": ("B", 1.0), "byte/block": ("B", 1.0),
    "Kbyte": ("B", 1e3), "Kbyte/block": ("B", 1e3), "byte/second": ("B/s", 1.0), "cycle/nsecond": ("Hz", 1e9),
    "cycle/second": ("Hz", 1.0), "hz": ("Hz", 1.0), "Hz": ("Hz", 1.0), "": ("1", 1.0), "%": ("%", 1.0),
    "register/thread": ("1", 1.0), "block": ("1", 1.0), "thread": ("1", 1.0), "inst": ("1", 1.0), "warp": ("1", 1.0),
    "cycle": ("cycles", 1.0), "inst/cycle": ("1", 1.0), "ratio": ("1", 1.0),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel launch; `values` has (unit, value) by the profiler's metric name."""

    number: int
    kernel: str
    values: Mapping[str, tuple[str, float]]

    def value(self, name: str) -> float | None:
        """A value, None when it was not measured."""
        return self.values[name][1] if name in self.values else None


def launches(text: str) -> list[Launch]:
    """The rows of the raw page; empty when there are none."""
    table = _table(text)
    header = next(table, None)
    units = next(table, None)
    if header is None or units is None or "Kernel Name" not in header:
        return []
    kernel = header.index("Kernel Name")
    columns = [(i, name, units[i]) for i, name in enumerate(header) if "__" in name and i < len(units)]
    return [
        Launch(number, row[kernel], dict(_values(row, columns)))
        for number, row in enumerate(row for row in table if len(row) == len(header))
    ]


def advice(text: str) -> list[Advice]:
    """The profiler's own advice, launch by launch, as it stands on the page."""
    table = _table(text)
    header = next(table, None)
    if header is None or "Rule Name" not in header:
        return []
    order: dict[str, int] = {}
    found = []
    for row in (dict(zip(header, row, strict=False)) for row in table):
        launch = order.setdefault(row.get("ID", ""), len(order))
        if row.get("Rule Name") and row.get("Rule Description"):
            found.append(_one(row, launch))
    return list(dict.fromkeys(found))


def number(text: str) -> float | None:
    """A printed number; of a value with instances behind it (`12 (3; 4; 5)`) the value; None for n/a."""
    head = text.strip().split(" ", 1)[0]
    return float(head.replace(",", "")) if _NUMBER.match(head) else None


def _one(row: Mapping[str, str], launch: int) -> Advice:
    words = " ".join(row["Rule Description"].split())
    kernel = row.get("Kernel Name", "")
    gain = number(row.get("Estimated Speedup", ""))
    return Advice(launch, kernel, row["Rule Name"], row.get("Rule Type", ""), words, gain)


def _values(row: Sequence[str], columns: Sequence[tuple[int, str, str]]) -> Iterator[tuple[str, tuple[str, float]]]:
    has_new = any(name == counters.DRAM for _, name, _ in columns)
    for i, name, printed in columns:
        value = number(row[i])
        if value is None or (name == counters.DRAM_OLD and has_new) or (value == 0 and _is_never_zero(name)):
            continue
        unit, factor = UNITS.get(printed, (printed, 1.0))
        yield counters.DRAM if name == counters.DRAM_OLD else name, (unit, value * factor)


def _is_never_zero(name: str) -> bool:
    """A launch that ran fitted on a multiprocessor: of clusters larger than the portable size 0 says "not known"."""
    return name == counters.THEORETICAL or name.startswith(counters.OCCUPANCY_LIMIT)


def _table(text: str) -> Iterator[list[str]]:
    """The CSV in a program's output: from its header line on, without the profiler's own messages."""
    lines = [line for line in text.splitlines() if not line.startswith("==")]
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    return csv.reader(lines[start:])
