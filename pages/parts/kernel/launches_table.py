"""The launches of one profiled call, one row each: shape, resources, occupancy with its limiter, shares of peak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pages.parts import wording
from pages.parts.widgets import table
from storage import counters, kernel_names
from storage.queries import MetricRow

COLUMNS = [
    table.Column("kernel", "Launch"),
    table.Column("time", "Time", "right"),
    table.Column("shape", "Blocks × threads", "right"),
    table.Column("registers", "Registers", "right", "per thread"),
    table.Column("shared", "Shared memory", "right", "per block: static and dynamic"),
    table.Column("occupancy", "Occupancy", "right", "achieved of theoretical, and its limiter"),
    table.Column("compute", "Compute", "right", "busiest arithmetic or issue unit, of its peak"),
    table.Column("memory", "Memory", "right", "busiest part of the memory path, of its peak"),
    table.Column("dram", "DRAM", "right", "device memory, of its peak"),
]
FULL = 99.5
SHARED = (counters.STATIC_SHARED, counters.DYNAMIC_SHARED, "shared memory per block")


def rows(metrics: Sequence[MetricRow]) -> list[table.Row]:
    """A row per launch, in the order of the call."""
    values: dict[tuple[int, str], dict[str, float]] = {}
    for row in metrics:
        if row.launch >= 0:
            values.setdefault((row.launch, row.kernel), {})[row.metric] = row.value
    total = sum(one.get(counters.TIME, 0.0) for one in values.values())
    return [table.Row(f"{launch}", cells(launch, kernel, one, total)) for (launch, kernel), one in values.items()]


def cells(launch: int, kernel: str, values: Mapping[str, float], total_s: float) -> dict[str, table.Cell]:
    """One launch as cells; what was not measured is a dash."""
    took = values.get(counters.TIME)
    share = f"{wording.significant(100 * took / total_s, 2)} % of the time" if took and total_s else ""
    shared = [values[name] for name in SHARED if name in values]
    return {
        "kernel": table.text(f"{launch}: {kernel_names.short(kernel)}", "strong", title=kernel[:1000]),
        "time": table.text(_quantity(took, "s"), note=share),
        "shape": _shape(values),
        "registers": _count(values.get(counters.REGISTERS)),
        "shared": _quantity(sum(shared), "B") if shared else wording.NONE,
        "occupancy": _occupancy(values),
        "compute": _percent(values.get(counters.COMPUTE)),
        "memory": _percent(values.get(counters.MEMORY)),
        "dram": _percent(values.get(counters.DRAM)),
    }


def limiter(values: Mapping[str, float]) -> str:
    """The resource that lets the fewest blocks in; empty at full occupancy or where it is not known."""
    start = counters.OCCUPANCY_LIMIT
    blocks = {name.removeprefix(start): value for name, value in values.items() if name.startswith(start)}
    if not blocks or values.get(counters.THEORETICAL, 100.0) >= FULL:
        return ""
    least = min(blocks.values())
    return " and ".join(name.replace("_mem", " memory") for name, value in blocks.items() if value == least)


def _shape(values: Mapping[str, float]) -> table.Cell:
    grid, block, waves = (values.get(name) for name in (counters.GRID, counters.BLOCK, counters.WAVES))
    if grid is None or block is None:
        return wording.NONE
    note = f"{wording.significant(waves)} waves" if waves is not None else ""
    return table.text(f"{wording.count(int(grid))} × {wording.count(int(block))}", note=note)


def _occupancy(values: Mapping[str, float]) -> table.Cell:
    possible, achieved = values.get(counters.THEORETICAL), values.get(counters.ACHIEVED)
    if possible is None:
        return wording.NONE
    by = limiter(values)
    of = f"{_percent(achieved)} of {_percent(possible)}" if achieved is not None else f"≤ {_percent(possible)}"
    return table.text(of, note=f"limited by {by}" if by else "")


def _percent(value: float | None) -> str:
    return wording.NONE if value is None else f"{wording.significant(value, 2)} %"


def _count(value: float | None) -> str:
    return wording.NONE if value is None else wording.count(int(value))


def _quantity(value: float | None, unit: str) -> str:
    return wording.NONE if value is None else wording.quantity(value, unit)
