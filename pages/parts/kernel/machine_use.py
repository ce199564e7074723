"""How a profiled kernel uses the machine: its launches one by one, shares of the machine's rates, occupancy with what
limits it, and what warps wait for. Pure: table rows, bars and a Plotly figure."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pages.parts import wording
from pages.parts.kernel.metrics import of_peak
from pages.parts.widgets import table
from pages.parts.widgets.bars import Bar
from storage.index.queries import MetricRow
from storage.results import counters, kernel_names

Values = Mapping[str, float]
SHARES = (
    ("memory throughput share", "memory bandwidth"),
    ("arithmetic throughput share", "arithmetic throughput"),
    ("memory throughput at least, share", "memory bandwidth, at least"),
    ("arithmetic throughput at least, share", "arithmetic throughput, at least"),
)
BLOCKS = {
    "registers": "by registers",
    "shared_mem": "by shared memory",
    "warps": "by warps",
    "blocks": "by block slots",
    "barriers": "by barriers",
}
LAUNCH_COLUMNS = [
    table.Column("kernel", "Launch"),
    table.Column("time", "Time", help="with its share of the call"),
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
LEAST_STALL = 0.01
MOST_STALLS = 8
ROW_PX = 26


def whole(rows: Sequence[MetricRow]) -> dict[str, float]:
    """Figures of the whole call by name."""
    return {row.metric: row.value for row in rows if row.launch < 0 and not row.kernel}


def longest(rows: Sequence[MetricRow]) -> dict[str, float]:
    """Figures of the launch that takes the most time; the first one where no time is told."""
    launches: dict[tuple[int, str], dict[str, float]] = {}
    for row in rows:
        if row.launch >= 0:
            launches.setdefault((row.launch, row.kernel), {})[row.metric] = row.value
    return max(launches.values(), key=lambda values: values.get(counters.TIME, 0.0), default={})


def rates(values: Values, before: Values, kinds: tuple[str, str] = ("", "")) -> list[Bar]:
    """Shares of what the machine can do at best: memory, arithmetic, processors. `kinds` are what most operations are
    of, here and before: a share of another peak is no mark on the same bar, but told below it."""
    shown = [
        Bar(label, values[name], _share(values[name]), *_mark(name, before.get(name), kinds))
        for name, label in SHARES
        if name in values
    ]
    used, earlier = _busy(values), _busy(before)
    available = values.get("processors available", values.get("threads available"))
    if used is not None and available:
        text = f"{wording.significant(used, 2)} of {wording.count(int(available))}"
        shown.append(
            Bar("processors busy", used / available, text, earlier / available if earlier is not None else None)
        )
    return shown


def _share(value: float) -> str:
    return wording.quantity(value, "1", is_share=True)


def _mark(name: str, before: float | None, kinds: tuple[str, str]) -> tuple[float | None, str]:
    """Where the other kernel's mark stands, and what is said in its place."""
    kind, previous = kinds
    if before is None or name not in counters.BY_KIND or not (kind and previous) or kind == previous:
        return before, ""
    return None, f"{of_peak(kind)}; the kernel beside it: {_share(before)} {of_peak(previous)}"


def _busy(values: Values) -> float | None:
    """Processor time over the calls' time; older profiles call it by another name."""
    return values.get("processors busy", values.get("threads used"))


def occupancy(values: Values, before: Values) -> list[Bar]:
    """Theoretical and achieved occupancy of one launch."""
    names = ((counters.THEORETICAL, "theoretical"), (counters.ACHIEVED, "achieved"))
    return [
        Bar(label, values[name] / 100, wording.quantity(values[name], "%"), _part(before.get(name)))
        for name, label in names
        if name in values
    ]


def blocks(values: Values, before: Values) -> list[Bar]:
    """Blocks that fit on a multiprocessor by each resource; the smallest limits. Empty where not told."""
    counts = {what: values[f"{counters.OCCUPANCY_LIMIT}{what}"] for what in BLOCKS if _limit(what) in values}
    if not counts:
        return []
    most, limits = max(counts.values()) or 1.0, limiter(values).replace(" memory", "_mem").split(" and ")
    return [
        Bar(
            BLOCKS[what], count / most, f"{wording.count(int(count))} {'← limits' if what in limits else ''}".strip(),
            before[_limit(what)] / most if _limit(what) in before else None, is_limit=what in limits,
        )
        for what, count in counts.items()
    ]  # fmt: skip


def _limit(what: str) -> str:
    return f"{counters.OCCUPANCY_LIMIT}{what}"


def _part(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


def launch_rows(metrics: Sequence[MetricRow]) -> list[table.Row]:
    """A row per launch, in the order of the call."""
    values: dict[tuple[int, str], dict[str, float]] = {}
    for row in metrics:
        if row.launch >= 0:
            values.setdefault((row.launch, row.kernel), {})[row.metric] = row.value
    total = sum(figures.get(counters.TIME, 0.0) for figures in values.values())
    return [
        table.Row(f"{launch}", launch_cells(launch, kernel, figures, total))
        for (launch, kernel), figures in values.items()
    ]


def launch_cells(launch: int, kernel: str, values: Mapping[str, float], total_s: float) -> dict[str, table.Cell]:
    """One launch as cells; what was not measured is a dash."""
    took = values.get(counters.TIME)
    share = f"{wording.significant(100 * took / total_s, 2)} % of the time" if took and total_s else ""
    shared = [values[name] for name in SHARED if name in values]
    return {
        "kernel": table.text(f"{launch}: {kernel_names.short(kernel)}", "strong", title=kernel[:1000]),
        "time": table.bar(_quantity(took, "s"), took / total_s if took and total_s else 0.0, note=share),
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


@dataclass(frozen=True, slots=True)
class Waits:
    """Each reason's share (0..1) of the time that warps of a call wait, largest first, and a sentence about which
    launches it is of where there are several."""

    shares: Mapping[str, float]
    of: str


def waits(rows: Sequence[MetricRow]) -> Waits:
    """Of a whole call: as the profile tells it, else from the launches whose waits it kept, else from its averages."""
    call = whole(rows)
    launches: dict[int, dict[str, float]] = {}
    for row in rows:
        if row.launch >= 0:
            launches.setdefault(row.launch, {})[row.metric] = row.value
    told = {reason: value / 100 for name, value in call.items() if (reason := counters.wait_share_reason(name))}
    known = [values for values in launches.values() if any(map(counters.stall_reason, values))]
    shares = told or counters.wait_shares([(values.get(counters.TIME, 1.0), values) for values in known])
    shares = shares or counters.wait_shares([(1.0, call)])
    of = ""
    if shares and len(launches) > 1 and (told or known):
        part = sum(values.get(counters.TIME, 0.0) for values in known)
        total = sum(values.get(counters.TIME, 0.0) for values in launches.values())
        which = (
            f" Only of the {len(known)} longest of the {len(launches)} profiled launches, "
            f"{wording.significant(100 * part / total, 2)} % of their time: this profile kept no other's."
        )
        of = "Each launch's shares, weighted by its time." + (which if not told and len(known) < len(launches) else "")
    return Waits({reason: share for reason, share in shares.items() if share >= LEAST_STALL}, of)


def stall_figure(
    shares: Mapping[str, float], before: Mapping[str, float] | None = None, name: str = ""
) -> dict[str, Any]:
    """Horizontal bars, the longest on top, with what each reason means behind the pointer; those of the kernel `name`
    that it is compared with stand below each in gray."""
    names = list(shares)[:MOST_STALLS]
    traces = [_stall_bars("this kernel", shares, names, "@violet-color/70")]
    if before:
        traces.append(_stall_bars(html.escape(name), before, names, "@gray-color/60"))
    axis = {"gridcolor": "@border-color", "zeroline": False}
    layout = {
        "showlegend": bool(before), "margin": {"l": 8, "r": 44, "t": 26 if before else 6, "b": 36},
        "paper_bgcolor": "rgba(0,0,0,0)", "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
        "plot_bgcolor": "rgba(0,0,0,0)", "font": {"color": "@text-color", "size": 12}, "bargap": 0.3,
        "uirevision": "stalls", "xaxis": axis | {"ticksuffix": " %", "rangemode": "tozero"},
        "yaxis": axis | {"autorange": "reversed", "automargin": True},
    }  # fmt: skip
    return {"data": traces, "layout": layout}


def _stall_bars(name: str, shares: Mapping[str, float], names: Sequence[str], colour: str) -> dict[str, Any]:
    meanings = [f"waiting for {counters.STALLS.get(reason, reason)}" for reason in names]
    return {
        "type": "bar", "orientation": "h", "name": name, "x": [100 * shares.get(reason, 0.0) for reason in names],
        "y": [reason.replace("_", " ") for reason in names], "marker": {"color": colour},
        "text": [f"{wording.significant(100 * shares.get(reason, 0.0), 2)} %" for reason in names],
        "textposition": "outside", "cliponaxis": False,
        "hovertext": meanings, "hovertemplate": "%{hovertext}: %{x:.3g} %<extra></extra>",
    }  # fmt: skip


def stall_height(shares: Mapping[str, float], before: Mapping[str, float] | None = None) -> int:
    """Pixels that so many rows need."""
    return (76 if before else 56) + (40 if before else ROW_PX) * min(len(shares), MOST_STALLS)
