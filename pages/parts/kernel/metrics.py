"""Every figure of a profile beside that of the kernel it is compared with: what matters most first, then the whole call
and each launch; and what a change means: whether more of it is better, and how much it matters.

Knows the figures of both toolchains by name. A figure that nobody judged counts little and is neither good nor bad.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby

import streamlit as st

from pages.parts import wording
from pages.parts.widgets import table
from storage.index import queries
from storage.index.database import Database
from storage.index.queries import CutRow, MetricChangeRow
from storage.results import counters, kernel_names

COLUMNS = [
    table.Column("metric", "Metric"),
    table.Column("value", "Value", "right"),
    table.Column("previous", "Before", "right"),
    table.Column("change", "Change", "right"),
]
FUNCTION_COLUMNS = [
    table.Column("function", "Function"),
    table.Column("value", "Share of samples", "right"),
]
MOST_FUNCTIONS = 8
ORDER = {counter.name: number for number, counter in enumerate(counters.COUNTERS)}
MOST_CHANGES = 10
CHANGE_COLUMNS = [
    table.Column("metric", "Metric"),
    table.Column("change", "Change", "nowrap", "better or worse for speed, by the metric's usual meaning"),
    table.Column("values", "Before → after", "wide"),
]
OTHER_PEAKS = (
    " Most operations of the two kernels are of different kinds, of which the device does more or fewer in a second: "
    "shares of different peaks are judged neither better nor worse."
)


class Judgement(StrEnum):
    """What a change is, seen from a person who wants speed."""

    BETTER = "better"
    WORSE = "worse"
    CHANGED = "changed"
    SAME = "same"


TONES = {Judgement.BETTER: "green", Judgement.WORSE: "red", Judgement.CHANGED: "gray", Judgement.SAME: "gray"}
ICONS = {Judgement.BETTER: "held", Judgement.WORSE: "broken"}


def draw_functions(changes: Sequence[MetricChangeRow]) -> None:
    """Where the time goes, the function with most of it first; nothing where it was not sampled."""
    functions = by_function(changes)
    if functions:
        st.markdown("## Where the time goes")
        rows = [table.Row(f"{i}", function_cells(c)) for i, c in enumerate(functions[:MOST_FUNCTIONS])]
        table.draw("Profile metrics by function", FUNCTION_COLUMNS, rows, key="metrics:functions", is_compact=True)
        if len(functions) > MOST_FUNCTIONS:
            st.caption(f"Showing {MOST_FUNCTIONS} of {len(functions)} functions")


def by_function(changes: Sequence[MetricChangeRow]) -> list[MetricChangeRow]:
    """What was sampled in each function, most first. Compilers split one function into several symbols, which count as
    one: profiles from before they were added up have a row for each."""
    sums: dict[tuple[str, str], MetricChangeRow] = {}
    for change in changes:
        if change.launch < 0 and change.kernel:
            earlier = sums.get(key := (change.metric, change.kernel))
            sums[key] = replace(earlier, value=earlier.value + change.value) if earlier else change
    return sorted(sums.values(), key=lambda change: -change.value)


def draw_all(changes: Sequence[MetricChangeRow]) -> None:
    """Every figure of the call and of its launches, folded away."""
    whole = [c for c in changes if c.launch < 0 and not c.kernel]
    launches = [c for c in changes if c.launch >= 0]
    if whole:
        with st.expander("All metrics of the call", key="metrics:call", on_change="rerun") as folded:
            if folded.open:
                table.draw("Profile metrics, Whole call", COLUMNS, _rows(whole), key="metrics:whole", is_compact=True)
    if launches:
        with st.expander("All counters by launch", key="metrics:open", on_change="rerun") as folded:
            if folded.open:
                _launches(launches)


def _launches(changes: Sequence[MetricChangeRow]) -> None:
    # Trap: a component's key must not contain two underscores in a row, which kernel names do; so tables are numbered.
    for number, ((launch, kernel), group) in enumerate(groupby(changes, key=lambda c: (c.launch, c.kernel))):
        title = f"Launch {launch}: {kernel_names.short(kernel)}"
        st.markdown(f"## {wording.plain(title)}")
        table.draw(f"Profile metrics, {title}", COLUMNS, _rows(group), key=f"metrics:{number}", is_compact=True)


def _rows(changes: Iterable[MetricChangeRow]) -> list[table.Row]:
    """Figures of the product's own first, then counters in their known order."""
    ordered = sorted(changes, key=lambda c: ORDER.get(c.metric, len(ORDER) if "__" in c.metric else -1))
    return [table.Row(c.metric, _metric_cells(c)) for c in ordered]


def function_cells(row: MetricChangeRow) -> dict[str, table.Cell]:
    """One function of the call as cells."""
    value = wording.quantity(row.value, row.unit, row.metric.endswith("share"))
    return {"function": row.kernel, "value": value}


def _metric_cells(row: MetricChangeRow) -> dict[str, table.Cell]:
    """One metric as cells; a counter under its plain name, its own name and meaning behind the pointer."""
    name, about = counters.label(row.metric), counters.meaning(row.metric)
    before, after = before_and_after(row)
    return {
        "metric": table.text(name, title=f"{row.metric}: {about}" if about else name),
        "value": after,
        "previous": wording.NONE if row.previous is None else before,
        "change": _moved(row),
    }


def _moved(row: MetricChangeRow) -> table.Cell:
    """By how much it rose or fell: shares in points, everything else in percent or as a multiple."""
    if row.previous is None:
        return wording.NONE
    if row.unit == "%" or row.metric.endswith("share"):
        points = (row.value - row.previous) * (1 if row.unit == "%" else 100)
        return table.text("=", "muted") if abs(points) < 0.05 else table.text(f"{_arrow(points)} points", "strong")
    if row.ratio is None:
        return table.text("=", "muted") if row.value == row.previous else table.text("▲ from 0", "strong")
    percent = 100 * (row.ratio - 1)
    if abs(percent) < 0.5:
        return table.text("=", "muted")
    if percent > 200:
        return table.text(f"▲ {wording.significant(row.ratio, 2)} times", "strong")
    return table.text(f"{_arrow(percent)} %", "strong")


def _arrow(amount: float) -> str:
    return f"{'▲' if amount > 0 else '▼'} {wording.significant(abs(amount), 2)}"


def draw_changes(changes: Sequence[Weighed], number: int, key: str) -> None:
    """The table; the unimportant rest on request."""
    moved = [judged for judged in changes if judged.judgement is not Judgement.SAME]
    st.markdown(f"## Changes since kernel {number}")
    if not moved:
        st.caption("No change beyond what two profiles of the same kernel differ by.")
        return
    is_all = len(moved) > MOST_CHANGES and st.session_state.get(f"{key}:all", False)
    shown = moved if is_all else foremost(moved)
    rows = [table.Row(f"{i}", change_cells(judged)) for i, judged in enumerate(shown)]
    table.draw(
        f"Changes of the profile since kernel {number}", CHANGE_COLUMNS, rows, key=key, is_compact=True, is_folding=True
    )
    same = len(changes) - len(moved)
    if is_all or len(moved) > len(shown):
        label = f"Show all {len(moved)} (the first {MOST_CHANGES} and all that got worse: {len(shown)} shown)"
        st.toggle(label, key=f"{key}:all")
    st.caption(
        "Ordered by the size of the change times how much the metric usually matters for speed. "
        f"{same} more metrics are unchanged."
        + (OTHER_PEAKS if any(judged.change.is_of_another_peak for judged in moved) else "")
    )


def foremost(moved: Sequence[Weighed]) -> list[Weighed]:
    """The first ones, and all that got worse however small: that is never left out."""
    return [judged for i, judged in enumerate(moved) if i < MOST_CHANGES or judged.judgement is Judgement.WORSE]


def change_cells(judged: Weighed) -> dict[str, table.Cell]:
    """One change as cells."""
    change = judged.change
    name, about = counters.label(change.metric), counters.meaning(change.metric)
    moved = _moved(change)
    amount = moved if isinstance(moved, str) else str((moved or {}).get("text", ""))
    values = " → ".join(before_and_after(change))
    return {
        "metric": table.text(name, "strong", title=f"{change.metric}: {about}" if about else ""),
        "change": table.pill(f"{amount}, {judged.judgement}", TONES[judged.judgement], ICONS.get(judged.judgement, "")),
        "values": values,
    }


def counted(changes: Sequence[Weighed], number: int | None) -> str:
    """ "Since kernel 4: 9 better, 1 worse, 2 changed, of 14 metrics."; empty without anything to compare with."""
    if number is None or not changes:
        return ""
    by_judgement = [
        (sum(judged.judgement is judgement for judged in changes), judgement)
        for judgement in Judgement
        if judgement is not Judgement.SAME
    ]
    counts = [f"{count} {judgement}" for count, judgement in by_judgement if count]
    return f"Since kernel {number}: {', '.join(counts) if counts else 'no change'}, of {len(changes)} metrics."


def not_compared(db: Database, run_id: str, candidate_id: str, against: str | None = None) -> str:
    """Why a profiled kernel's profile is compared with no other one, or not with that of the kernel `against`, as every
    place says it."""
    profile = queries.profile(db, run_id, candidate_id)
    if profile is not None and profile.disturbance:
        return "Its profile was disturbed, so it is compared with no other."
    other = against or queries.profiled_ancestor(db, run_id, candidate_id)
    for row in queries.cut_profiles(db, run_id, [candidate_id, *([other] if other else [])]):
        if row.candidate_id == candidate_id:
            return f"{only_first(row)}, so its profile is compared with no other."
        return f"{only_first(row, f' of kernel {row.number}')}, so the two profiles are not compared."
    return "Profiled; no profiled ancestor to compare with."


def only_first(row: CutRow, of: str = "") -> str:
    """ "Only the first 40 of 712 launches were profiled", without a full stop; `of` names another kernel."""
    launches = f"{row.profiled} of {row.launched:,} launches" if row.launched else f"{row.profiled} launches"
    return f"Only the first {launches}{of} were profiled"


SAME = 0.02  # relative; below it two profiles of one kernel differ as well
FULL_WEIGHT = math.log(4)
SHARE_POINTS = 25.0


@dataclass(frozen=True, slots=True)
class Sense:
    """`direction` is 1 where more is better, -1 where less is, 0 where it depends. `weight` is 0..3; figures of one
    `topic` tell the same story."""

    direction: int = 0
    weight: float = 0.3
    topic: str = ""


@dataclass(frozen=True, slots=True)
class Weighed:
    """A change with its meaning; `score` orders changes by how much they matter."""

    change: MetricChangeRow
    sense: Sense
    judgement: Judgement
    score: float


_TIME, _MEMORY, _COMPUTE = "time", "memory", "arithmetic"
_PCT = ".avg.pct_of_peak_sustained_active"
SENSES: Mapping[str, Sense] = {
    "latency": Sense(-1, 3.0, _TIME),
    "device time": Sense(-1, 3.0, _TIME),
    counters.TIME: Sense(-1, 3.0, _TIME),
    "sm__cycles_elapsed.max": Sense(-1, 1.0, _TIME),
    "headroom": Sense(-1, 1.0, _TIME),
    "launches": Sense(-1, 2.0, "launches"),
    "memory traffic": Sense(-1, 2.4, "traffic"),
    counters.BYTES_READ: Sense(-1, 1.5, "traffic"),
    counters.BYTES_WRITTEN: Sense(-1, 1.5, "traffic"),
    "memory throughput": Sense(1, 1.6, _MEMORY),
    "memory throughput share": Sense(1, 2.2, _MEMORY),
    counters.MEMORY: Sense(1, 1.4, "memory path"),
    counters.DRAM: Sense(1, 1.8, _MEMORY),
    counters.DRAM_OLD: Sense(1, 1.8, _MEMORY),
    "arithmetic throughput": Sense(1, 1.6, _COMPUTE),
    "arithmetic throughput share": Sense(1, 2.2, _COMPUTE),
    "arithmetic intensity": Sense(1, 1.6, "intensity"),
    counters.COMPUTE: Sense(1, 1.6, _COMPUTE),
    counters.ACHIEVED: Sense(1, 1.4, "occupancy"),
    counters.THEORETICAL: Sense(1, 1.2, "occupancy"),
    counters.WAVES: Sense(0, 0.6, "shape"),
    counters.GRID: Sense(0, 0.5, "shape"),
    counters.BLOCK: Sense(0, 0.5, "shape"),
    counters.REGISTERS: Sense(0, 1.0, "registers"),
    counters.STATIC_SHARED: Sense(0, 0.8, "shared memory"),
    counters.DYNAMIC_SHARED: Sense(0, 0.8, "shared memory"),
    "l1tex__t_sector_hit_rate.pct": Sense(1, 0.9, "L1"),
    "lts__t_sector_hit_rate.pct": Sense(1, 1.0, "L2"),
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct": Sense(1, 1.8, "coalescing"),
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct": Sense(1, 1.6, "coalescing"),
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": Sense(-1, 1.6, "bank conflicts"),
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum": Sense(-1, 1.6, "bank conflicts"),
    f"sm__pipe_tensor_cycles_active{_PCT}": Sense(1, 1.6, "tensor pipe"),
    f"sm__pipe_fma_cycles_active{_PCT}": Sense(1, 1.0, "FMA pipe"),
    f"sm__pipe_alu_cycles_active{_PCT}": Sense(0, 0.6, "ALU pipe"),
    counters.LOCAL_LOADS: Sense(-1, 2.0, "spills"),
    counters.LOCAL_STORES: Sense(-1, 2.0, "spills"),
    counters.ELIGIBLE: Sense(1, 1.0, "issue"),
    "smsp__issue_active.avg.per_cycle_active": Sense(1, 1.4, "issue"),
    "smsp__thread_inst_executed_per_inst_executed.ratio": Sense(1, 1.2, "masked lanes"),
    "working threads": Sense(1, 2.4, "threads"),
    "processors busy": Sense(1, 0.6, "threads"),
    "processors available": Sense(0, 0.0, "threads"),
    "threads used": Sense(1, 0.6, "threads"),  # how older profiles call processors busy
    "threads available": Sense(0, 0.0, "threads"),
    "system time share": Sense(-1, 1.4, "system"),
    "page faults per call": Sense(-1, 1.8, "page faults"),
    "voluntary context switches per call": Sense(-1, 0.3, "switches"),
    "involuntary context switches per call": Sense(-1, 0.2, "switches"),
    "scalar instructions": Sense(-1, 0.8, "code"),
    "packed instructions": Sense(1, 0.8, "code"),
    "fma instructions": Sense(1, 0.8, "code"),
    "divides instructions": Sense(-1, 0.6, "code"),
    "spills instructions": Sense(-1, 1.2, "spills"),
    "libm calls instructions": Sense(-1, 1.4, "library calls"),
}
STALL = Sense(-1, 0.9, "waits")


def sense(metric: str) -> Sense:
    """What is known of a figure."""
    reason = counters.stall_reason(metric) or counters.wait_share_reason(metric)
    if reason in ("selected", "not_selected"):  # an issued warp waits for nothing; one in the queue finds work to do
        return Sense(0, 0.4 if reason == "not_selected" else 0.0, "waits")
    return STALL if reason else SENSES.get(metric, Sense(topic=metric))


def weighed(changes: Sequence[MetricChangeRow]) -> list[Weighed]:
    """Changes of the whole call, what matters most first; those without a figure to compare with are left out."""
    whole = [c for c in changes if c.launch < 0 and not c.kernel and c.previous is not None]
    judged = [_weigh(change) for change in whole or _of_longest_launch(changes)]
    return sorted(judged, key=lambda change: -change.score)


def telling(changes: Sequence[Weighed], most: int = 3) -> list[Weighed]:
    """The few that say why a kernel became faster or slower, one per topic; time itself is no reason."""
    kept: dict[str, Weighed] = {}
    for judged in changes:
        if judged.judgement is not Judgement.SAME and judged.sense.topic != _TIME and judged.sense.weight >= 0.5:
            kept.setdefault(judged.sense.topic, judged)
    return list(kept.values())[:most]


def with_unit(change: MetricChangeRow, amount: float) -> str:
    """A figure with its unit; a ratio of a stall reason counts cycles."""
    if counters.stall_reason(change.metric):
        return f"{wording.significant(amount)} {counters.STALL_UNIT}"
    return wording.quantity(amount, change.unit, change.metric.endswith("share"))


def before_and_after(change: MetricChangeRow) -> tuple[str, str]:
    """Both figures; where they are shares of different peaks, each with its own."""
    before, after = with_unit(change, change.previous or 0.0), with_unit(change, change.value)
    if not change.is_of_another_peak:
        return before, after
    words = of_peak if change.metric.endswith("share") else _with_operations
    return f"{before} {words(change.previous_kind)}", f"{after} {words(change.kind)}"


def of_peak(kind: str) -> str:
    """Of which peak a share is: "of the TF32 peak"."""
    return f"of the {kind.upper()} peak"


def _with_operations(kind: str) -> str:
    return f"with {kind.upper()} operations"


def phrase(judged: Weighed) -> str:
    """ "DRAM throughput from 42 % to 61 % (better)"."""
    change = judged.change
    before, after = before_and_after(change)
    mark = f" ({judged.judgement})" if judged.judgement in (Judgement.BETTER, Judgement.WORSE) else ""
    name = counters.label(change.metric)
    # The bars show the longest launch's.
    name += " (mean of all launches)" if change.launch < 0 and judged.sense.topic == "occupancy" else ""
    return f"{name} from {before} to {after}{mark}"


def _weigh(change: MetricChangeRow) -> Weighed:
    metric_sense, previous = sense(change.metric), change.previous or 0.0
    if change.is_within_noise or abs(change.value - previous) <= SAME * max(abs(previous), abs(change.value)):
        return Weighed(change, metric_sense, Judgement.SAME, 0.0)
    rises = change.value > previous
    judgement = Judgement.CHANGED
    if metric_sense.direction and not change.is_of_another_peak:
        judgement = Judgement.BETTER if rises is (metric_sense.direction > 0) else Judgement.WORSE
    return Weighed(change, metric_sense, judgement, metric_sense.weight * _size(change, previous))


def _size(change: MetricChangeRow, previous: float) -> float:
    """How large a change is, 0..1: shares by points, everything else by ratio. A share of a share counts little."""
    if change.unit == "%" or change.metric.endswith("share"):
        points = abs(change.value - previous) * (1.0 if change.unit == "%" else 100.0)
        return min(1.0, points / SHARE_POINTS)
    if previous <= 0 or change.value <= 0:
        return 1.0
    return min(1.0, abs(math.log(change.value / previous)) / FULL_WEIGHT)


def _of_longest_launch(changes: Sequence[MetricChangeRow]) -> list[MetricChangeRow]:
    times = {(c.launch, c.kernel): c.value for c in changes if c.metric == counters.TIME and c.launch >= 0}
    longest = max(times, key=lambda key: times[key], default=None)
    return [c for c in changes if (c.launch, c.kernel) == longest and c.previous is not None]
