"""What a change of a profile's figure means: whether more of it is better, and how much it matters. Pure.

Knows the figures of both toolchains by name. A figure that nobody judged counts little and is neither good nor bad.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pages.parts import wording
from storage import counters
from storage.queries import MetricChangeRow

SAME = 0.02  # relative; below it two profiles of one kernel differ as well
FULL_WEIGHT = math.log(4)
SHARE_POINTS = 25.0


class Judgement(StrEnum):
    """What a change is, seen from a person who wants speed."""

    BETTER = "better"
    WORSE = "worse"
    CHANGED = "changed"
    SAME = "same"


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
    reason = counters.stall_reason(metric)
    if reason in ("selected", "not_selected"):  # an issued warp waits for nothing; one in the queue finds work to do
        return Sense(0, 0.4 if reason == "not_selected" else 0.0, "waits")
    return STALL if reason else SENSES.get(metric, Sense(topic=metric))


def weighed(changes: Sequence[MetricChangeRow]) -> list[Weighed]:
    """Changes of the whole call, what matters most first; those without a figure to compare with are left out."""
    whole = [c for c in changes if c.launch < 0 and not c.kernel and c.previous is not None]
    found = [_weigh(change) for change in whole or _of_longest_launch(changes)]
    return sorted(found, key=lambda one: -one.score)


def telling(found: Sequence[Weighed], most: int = 3) -> list[Weighed]:
    """The few that say why a kernel became faster or slower, one per topic; time itself is no reason."""
    kept: dict[str, Weighed] = {}
    for one in found:
        if one.judgement is not Judgement.SAME and one.sense.topic != _TIME and one.sense.weight >= 0.5:
            kept.setdefault(one.sense.topic, one)
    return list(kept.values())[:most]


def value(change: MetricChangeRow, amount: float) -> str:
    """A figure with its unit."""
    return wording.quantity(amount, change.unit, change.metric.endswith("share"))


def phrase(one: Weighed) -> str:
    """ "DRAM throughput from 42 % to 61 % (better)"."""
    change = one.change
    before = value(change, change.previous or 0.0)
    mark = f" ({one.judgement})" if one.judgement in (Judgement.BETTER, Judgement.WORSE) else ""
    return f"{counters.label(change.metric)} from {before} to {value(change, change.value)}{mark}"


def _weigh(change: MetricChangeRow) -> Weighed:
    known, previous = sense(change.metric), change.previous or 0.0
    if abs(change.value - previous) <= SAME * max(abs(previous), abs(change.value)):
        return Weighed(change, known, Judgement.SAME, 0.0)
    rises = change.value > previous
    judgement = Judgement.CHANGED
    if known.direction:
        judgement = Judgement.BETTER if rises is (known.direction > 0) else Judgement.WORSE
    return Weighed(change, known, judgement, known.weight * _size(change, previous))


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
