"""What Nsight Compute printed: counters launch by launch, its advice, and the totals over one call.

A value that is not there is left out, never zero. Units are told as the profiler prints them, in base units.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from storage.results import counters
from storage.results.profile_results import Advice

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
# Constants are loaded by half-precision instructions too; so few per thread are no arithmetic.
MOVES_PER_THREAD = 4
_CONFIGURATION = "launch__"


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel launch; `values` has (unit, value) by the profiler's metric name."""

    number: int
    kernel: str
    values: Mapping[str, tuple[str, float]]

    def value(self, name: str) -> float | None:
        """A value, None when it was not measured."""
        return self.values[name][1] if name in self.values else None


def read_launches(text: str) -> list[Launch]:
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


def read_advice(text: str) -> list[Advice]:
    """The profiler's own advice, launch by launch, as it stands on the page."""
    table = _table(text)
    header = next(table, None)
    if header is None or "Rule Name" not in header:
        return []
    order: dict[str, int] = {}
    advice = []
    for row in (dict(zip(header, row, strict=False)) for row in table):
        launch = order.setdefault(row.get("ID", ""), len(order))
        if row.get("Rule Name") and row.get("Rule Description"):
            advice.append(_one(row, launch))
    return list(dict.fromkeys(advice))


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


@dataclass(frozen=True, slots=True)
class Whole:
    """Totals of one call: seconds on the device, device-memory bytes, operations by kind of arithmetic.

    `flop` maps fp32, fp16, fp64 and the tensor kinds (`tf32`, `bf16`, …) to operations; None where not counted.
    """

    seconds: float
    dram_bytes: float | None
    flop: Mapping[str, float] | None
    averages: Mapping[str, tuple[str, float]]

    def average(self, name: str) -> float | None:
        """A counter's total or weighted average; None when no launch has it."""
        return self.averages[name][1] if name in self.averages else None

    @property
    def total_flop(self) -> float | None:
        """All counted operations."""
        return None if self.flop is None else sum(self.flop.values())

    @property
    def main_kind(self) -> str:
        """The kind most operations are of, under the name of its ceiling; empty where none were counted."""
        return counters.main_kind(self.flop or {})

    @property
    def intensity(self) -> float | None:
        """Operations per byte of device memory; None when either is unknown or no byte moved."""
        return self.total_flop / self.dram_bytes if self.total_flop is not None and self.dram_bytes else None

    @property
    def rate(self) -> float | None:
        """Operations per second."""
        return self.total_flop / self.seconds if self.total_flop is not None and self.seconds else None

    @property
    def bandwidth(self) -> float | None:
        """Bytes of device memory per second."""
        return self.dram_bytes / self.seconds if self.dram_bytes is not None and self.seconds else None


def whole_of(launches: Sequence[Launch]) -> Whole:
    """Put the launches together."""
    names = dict.fromkeys(name for launch in launches for name in launch.values)
    averages = {name: _together(name, launches) for name in names if not name.startswith(_CONFIGURATION)}
    read, written = (_sum(launches, name) for name in (counters.BYTES_READ, counters.BYTES_WRITTEN))
    bytes_moved = None if read is None and written is None else (read or 0.0) + (written or 0.0)
    kinds = [flop_of(launch) for launch in launches]
    counted = None if not kinds or any(flop is None for flop in kinds) else _added(flop for flop in kinds if flop)
    return Whole(seconds_of(launches), bytes_moved, counted, averages)


def seconds_of(launches: Sequence[Launch]) -> float:
    """Time on the device, launches one after the other."""
    return _sum(launches, counters.TIME) or 0.0


def flop_of(launch: Launch) -> dict[str, float] | None:
    """Operations of one launch by kind; None when its arithmetic was not counted."""
    threads = (launch.value(counters.GRID) or 0.0) * (launch.value(counters.BLOCK) or 0.0)
    flop: dict[str, float] = {}
    is_counted = False
    for kind, each in counters.OPERATIONS.items():
        executed = launch.value(counters.operation_counter(kind))
        is_counted = is_counted or executed is not None
        if executed and not (kind[0] == "h" and executed <= MOVES_PER_THREAD * threads):
            name = {"f": "fp32", "h": "fp16", "d": "fp64"}[kind[0]]
            flop[name] = flop.get(name, 0.0) + each * executed
    for counter, (_, value) in launch.values.items():
        if counter.startswith(counters.TENSOR_START) and value:
            kind = counter.removeprefix(counters.TENSOR_START).split(".")[0].split("_")[0]
            flop[kind] = flop.get(kind, 0.0) + value
    return flop if is_counted else None


def stall_shares(launches: Sequence[Launch]) -> dict[str, float]:
    """As `counters.wait_shares` says."""
    values = (
        (launch.value(counters.TIME) or 1.0, {name: value for name, (_, value) in launch.values.items()})
        for launch in launches
    )
    return counters.wait_shares(values)


def _together(name: str, launches: Sequence[Launch]) -> tuple[str, float]:
    having = [launch for launch in launches if name in launch.values]
    unit = having[0].values[name][0]
    if is_summed(name):
        return unit, sum(launch.values[name][1] for launch in having)
    weights = [launch.value(counters.TIME) or 0.0 for launch in having]
    total = sum(weights)
    if not total:
        return unit, sum(launch.values[name][1] for launch in having) / len(having)
    weighted = (weight * launch.values[name][1] for weight, launch in zip(weights, having, strict=True))
    return unit, sum(weighted) / total


def is_summed(name: str) -> bool:
    """Counts and cycles add up over launches; shares and ratios are averaged."""
    return name.endswith(".sum") or name == "sm__cycles_elapsed.max"


def _sum(launches: Sequence[Launch], name: str) -> float | None:
    values = [value for launch in launches if (value := launch.value(name)) is not None]
    return sum(values) if values else None


def _added(kinds: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for kind in kinds:
        for name, value in kind.items():
            total[name] = total.get(name, 0.0) + value
    return total
