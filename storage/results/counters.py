"""The GPU profiler's counters by name: what each is called for people, what it means, which values deserve a look.

Names are Nsight Compute's. Knows neither the program that reads them nor any value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

TIME = "gpu__time_duration.sum"
GRID = "launch__grid_size"
BLOCK = "launch__block_size"
REGISTERS = "launch__registers_per_thread"
STATIC_SHARED = "launch__shared_mem_per_block_static"
DYNAMIC_SHARED = "launch__shared_mem_per_block_dynamic"
WAVES = "launch__waves_per_multiprocessor"
COMPUTE = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
DRAM_OLD = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
THEORETICAL = "sm__maximum_warps_per_active_cycle_pct"
ACHIEVED = "sm__warps_active.avg.pct_of_peak_sustained_active"
BYTES_READ = "dram__bytes_read.sum"
BYTES_WRITTEN = "dram__bytes_write.sum"
ELIGIBLE = "smsp__warps_eligible.avg.per_cycle_active"
LOCAL_LOADS = "smsp__sass_inst_executed_op_local_ld.sum"
LOCAL_STORES = "smsp__sass_inst_executed_op_local_st.sum"
EXECUTED = "smsp__inst_executed.sum"
OCCUPANCY_LIMIT = "launch__occupancy_limit_"
STALL_START, STALL_END = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"
WAIT_SHARE = "share of waits: "  # of a whole call of several launches, in percent: `wait_shares`
STALL_UNIT = "cycles per instruction"  # which a warp waits for this reason, between two that it issues
TENSOR_BUSY = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
OPERATION_START, OPERATION_END = "smsp__sass_thread_inst_executed_op_", "_pred_on.sum"
TENSOR_START = "sm__ops_path_tensor_src_"


class Tier(IntEnum):
    """FIRST is always shown to a model, SECOND where a value leaves its normal range, COUNT only goes into sums."""

    COUNT = 0
    FIRST = 1
    SECOND = 2


@dataclass(frozen=True, slots=True)
class Counter:
    """One counter. Values below `low` or above `high` deserve a look; None where there is no such end.

    With `part_of` the share of that other counter is what counts.
    """

    name: str
    label: str
    meaning: str
    tier: Tier = Tier.FIRST
    low: float | None = None
    high: float | None = None
    part_of: str = ""

    def is_unusual(self, value: float) -> bool:
        """True outside the normal range. Nothing counted at all is no low value: the kernel does no such thing."""
        return (self.low is not None and 0 < value < self.low) or (self.high is not None and value > self.high)


_SECTORS = "smsp__sass_average_data_bytes_per_sector_mem_global_op_"
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_"
_TURNS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_"
_ACTIVE = ".avg.pct_of_peak_sustained_active"

# Order is the order on screen and in the prompt.
COUNTERS: tuple[Counter, ...] = (
    Counter(TIME, "duration", "time on the device under the profiler; not the figure behind the speed-up"),
    Counter("sm__cycles_elapsed.max", "elapsed cycles", "the same in clock cycles, whatever the clock was"),
    Counter(GRID, "grid", "blocks of the launch"),
    Counter(BLOCK, "block", "threads per block"),
    Counter("launch__cluster_size", "cluster", "blocks per cluster; 0 without clusters"),
    Counter(REGISTERS, "registers per thread", "many registers leave room for few warps"),
    Counter(STATIC_SHARED, "static shared memory", "per block, fixed when compiled"),
    Counter(DYNAMIC_SHARED, "dynamic shared memory", "per block, asked for by the launch"),
    Counter("launch__shared_mem_per_block_driver", "driver shared memory", "per block, taken by the system"),
    Counter(WAVES, "waves per multiprocessor", "below 1 leaves multiprocessors idle; a small fraction is a tail"),
    Counter(COMPUTE, "compute throughput", "busiest arithmetic or issue unit, of its peak"),
    Counter(MEMORY, "memory throughput", "busiest part of the memory path, of its peak"),
    Counter(DRAM, "DRAM throughput", "device memory, of its peak"),
    Counter("l1tex__throughput.avg.pct_of_peak_sustained_active", "L1 throughput", "first-level cache, of its peak"),
    Counter("lts__throughput.avg.pct_of_peak_sustained_elapsed", "L2 throughput", "second-level cache, of its peak"),
    Counter(BYTES_READ, "DRAM read", "compare with the least the task must read"),
    Counter(BYTES_WRITTEN, "DRAM written", "compare with the least the task must write"),
    Counter(THEORETICAL, "theoretical occupancy", "warps that fit at once, of the most possible"),
    Counter(ACHIEVED, "achieved occupancy", "warps that were there on average, of the most possible"),
    Counter("launch__occupancy_limit_registers", "blocks fitting by registers", "the smallest of these is the limiter"),
    Counter("launch__occupancy_limit_shared_mem", "blocks fitting by shared memory", "per multiprocessor"),
    Counter("launch__occupancy_limit_warps", "blocks fitting by warps", "per multiprocessor"),
    Counter("launch__occupancy_limit_blocks", "blocks fitting by block slots", "per multiprocessor"),
    Counter("launch__occupancy_limit_barriers", "blocks fitting by barriers", "per multiprocessor"),
    Counter("l1tex__t_sector_hit_rate.pct", "L1 hit rate", "reads served by the first-level cache", Tier.SECOND),
    Counter("lts__t_sector_hit_rate.pct", "L2 hit rate", "accesses served by the second-level cache", Tier.SECOND),
    Counter(f"{_SECTORS}ld.pct", "coalescing of global loads", "bytes used of those fetched; not of cp.async or TMA",
            Tier.SECOND, low=75),
    Counter(f"{_SECTORS}st.pct", "coalescing of global stores", "bytes used of those sent; not of TMA", Tier.SECOND,
            low=75),
    Counter(f"{_CONFLICTS}ld.sum", "bank conflicts on shared loads", "of the turns at the banks", Tier.SECOND,
            high=0.05, part_of=f"{_TURNS}ld.sum"),
    Counter(f"{_CONFLICTS}st.sum", "bank conflicts on shared stores", "of the turns at the banks", Tier.SECOND,
            high=0.05, part_of=f"{_TURNS}st.sum"),
    Counter(f"{_TURNS}ld.sum", "turns of shared loads", "in all", Tier.COUNT),
    Counter(f"{_TURNS}st.sum", "turns of shared stores", "in all", Tier.COUNT),
    Counter(TENSOR_BUSY, "tensor pipe", "cycles it worked", Tier.SECOND, high=5),
    Counter(f"sm__inst_executed_pipe_tensor{_ACTIVE}", "tensor pipe issue", "instructions, of peak", Tier.COUNT),
    Counter(f"sm__pipe_fma_cycles_active{_ACTIVE}", "FMA pipe", "cycles it worked", Tier.SECOND, high=60),
    Counter(f"sm__pipe_alu_cycles_active{_ACTIVE}", "ALU pipe", "integer and logic; address arithmetic",
            Tier.SECOND, high=40),
    Counter(f"sm__inst_executed_pipe_xu{_ACTIVE}", "special function pipe", "exp, log, sqrt, divide, conversions",
            Tier.SECOND, high=40),
    Counter(LOCAL_LOADS, "local memory loads", "registers spilled or arrays indexed at run time", Tier.SECOND, high=0),
    Counter(LOCAL_STORES, "local memory stores", "registers spilled or arrays indexed at run time",
            Tier.SECOND, high=0),
    Counter(ELIGIBLE, "eligible warps per cycle", "below 1 the scheduler often finds nothing to issue",
            Tier.SECOND, low=1),
    Counter("smsp__issue_active.avg.per_cycle_active", "issue slots used", "instructions per scheduler and cycle",
            Tier.SECOND, low=0.4),
    Counter("smsp__thread_inst_executed_per_inst_executed.ratio", "threads per instruction",
            "below 32 lanes were masked off", Tier.SECOND, low=28),
    Counter(EXECUTED, "warp instructions", "executed in all", Tier.COUNT),
)  # fmt: skip
BY_NAME: Mapping[str, Counter] = {counter.name: counter for counter in COUNTERS}
CONFLICTS = tuple(counter.name for counter in COUNTERS if counter.name.startswith(_CONFLICTS))
# Counted and not shown to a model, but kept with a profile: what others are shares of.
WHOLES = frozenset({counter.part_of for counter in COUNTERS if counter.part_of} | {EXECUTED})

# Figures of the whole call that are no counters of the profiler's: what Nsight Compute calls memory throughput is the
# busiest part of the memory path (MEMORY), so what moves over the time has another name.
OF_THE_CALL: Mapping[str, tuple[str, str]] = {
    "memory throughput": ("memory bandwidth", "bytes moved to and from memory, by the time"),
    "memory throughput share": ("share of peak memory bandwidth", "bytes moved to and from memory, of the most"),
    "memory throughput at least": ("least memory bandwidth", "the least bytes of the task, by the time"),
    "memory throughput at least, share": ("share of peak memory bandwidth, at least", "for the task's least bytes"),
    "arithmetic throughput share": ("share of peak arithmetic throughput", "operations by the time, of the most"),
}

# Shares of what a unit does at most, which is more of one kind of operations than of another: at the same rate BF16
# operations keep the tensor cores half as busy as TF32 ones. The last three are of the busiest unit or of the tensor's.
BY_KIND = frozenset({"arithmetic throughput share", COMPUTE, "headroom", TENSOR_BUSY})


OPERATIONS_OF = " operations"  # how the names of counted operations end


def operations(whole: Mapping[str, float]) -> dict[str, float]:
    """The operations of a profiled call by kind (`fp32`, `tf32`, ...), from its values by name; empty where they were
    not counted."""
    return {name.removesuffix(OPERATIONS_OF): value for name, value in whole.items() if name.endswith(OPERATIONS_OF)}


def main_kind(operations: Mapping[str, float]) -> str:
    """The kind most operations are of, under the name of its peak (`fp32`, `tf32`, `bf16`); empty where none were
    counted."""
    kind = max(operations, key=lambda name: operations[name], default="")
    return {"fp16": "bf16"}.get(kind, kind)


# What a warp waits for, in the profiler's words, and what that usually means.
STALLS: Mapping[str, str] = {
    "long_scoreboard": "data from global or local memory",
    "short_scoreboard": "data from shared memory or a special function",
    "barrier": "other warps at a block barrier",
    "mio_throttle": "the queue of shared memory and special functions",
    "lg_throttle": "the queue of global memory: too many or too narrow accesses",
    "math_pipe_throttle": "a busy arithmetic pipe",
    "wait": "a fixed delay of the instruction before",
    "not_selected": "its turn: another warp was issued",
    "tex_throttle": "the texture queue",
    "membar": "a memory fence",
    "no_instruction": "the instruction cache",
    "branch_resolving": "a branch target",
    "dispatch_stall": "the dispatcher",
    "drain": "stores to finish at the end",
    "imc_miss": "the constant cache",
    "sleeping": "its own sleep",
    "misc": "other reasons",
    "gmma": "an asynchronous tensor instruction",
    "selected": "nothing: it was issued",
}

# Operations that one executed thread instruction stands for, by the profiler's name of it.
OPERATIONS: Mapping[str, int] = {
    "ffma": 2, "fadd": 1, "fmul": 1, "hfma": 4, "hadd": 2, "hmul": 2, "dfma": 2, "dadd": 1, "dmul": 1,
}  # fmt: skip


def stall_counter(reason: str) -> str:
    """The counter of one stall reason."""
    return f"{STALL_START}{reason}{STALL_END}"


def stall_reason(counter: str) -> str | None:
    """The reason that a stall counter counts; None for any other counter."""
    if counter.startswith(STALL_START) and counter.endswith(STALL_END):
        return counter[len(STALL_START) : -len(STALL_END)]
    return None


def wait_share_reason(name: str) -> str | None:
    """The reason whose share of a call's waits a figure is; None for any other figure."""
    return name.removeprefix(WAIT_SHARE) if name.startswith(WAIT_SHARE) else None


def wait_shares(launches: Iterable[tuple[float, Mapping[str, float]]]) -> dict[str, float]:
    """Each stall reason's share (0..1) of the time that warps wait, largest first, of launches as seconds and values by
    name: each launch's shares weighted by its seconds. Cycles per instruction are no weight: a short launch that
    issues little has many. A warp that is issued does not wait; launches without these counters are left out."""
    shares: dict[str, float] = {}
    seconds = 0.0
    for took, values in launches:
        waits = {reason: value for name, value in values.items() if (reason := stall_reason(name))}
        waits.pop("selected", None)
        if total := sum(waits.values()):
            seconds += took
            for reason, wait in waits.items():
                shares[reason] = shares.get(reason, 0.0) + took * wait / total
    return (
        {name: share / seconds for name, share in sorted(shares.items(), key=lambda item: -item[1])} if seconds else {}
    )


def operation_counter(kind: str) -> str:
    """The counter of one kind of arithmetic instruction."""
    return f"{OPERATION_START}{kind}{OPERATION_END}"


def label(name: str) -> str:
    """What people call it; an unknown name as it is."""
    if reason := stall_reason(name):
        return f"stalled: {reason.replace('_', ' ')}"
    if wait_share_reason(name):
        return name.replace("_", " ")
    if name in OF_THE_CALL:
        return OF_THE_CALL[name][0]
    return BY_NAME[name].label if name in BY_NAME else name.replace("_", " ")


def meaning(name: str) -> str:
    """One line about it, empty for an unknown name."""
    if reason := stall_reason(name):
        return f"waiting for {STALLS.get(reason, reason)}; of a call of several launches the average by their time"
    if reason := wait_share_reason(name):
        return f"waiting for {STALLS.get(reason, reason)}; of each launch's waits, weighted by its time"
    if name in OF_THE_CALL:
        return OF_THE_CALL[name][1]
    return BY_NAME[name].meaning if name in BY_NAME else ""
