"""A profile in figures that rules can name: the same names for whatever profiler they come from.

Shares are in per cent. What was not measured is left out, never zero. Of a call with several launches, throughputs
and stalls are those of the whole call; what a launch was given is that of the one that takes longest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from storage.results import counters
from storage.results.profile_results import Metric, ProfileResult

MEMORY, COMPUTE = "share of the memory path's peak", "share of the arithmetic peak"
BUSIEST, LESSER = "larger share of the two peaks", "smaller share of the two peaks"
CLOSENESS = "smaller over larger share"
LEAD = "memory's share over arithmetic's"
DRAM, TRAFFIC = "share of the device memory's peak", "memory traffic over the task's least bytes"
SECTORS, CONFLICTS = "bytes used of fetched sectors", "bank conflicts in turns at the banks"
MEMORY_WAITS, SHARED_WAITS = "waits for global memory", "waits for shared memory"
CHAIN_WAITS = "waits for barriers and fixed delays"
OCCUPANCY, FITS = "achieved occupancy", "theoretical occupancy"
BY_REGISTERS, BY_SHARED = "registers limit occupancy", "shared memory limits occupancy"
SPILLS = "local memory accesses per hundred instructions"
WAVES, TAIL = "waves of blocks", "idle part of the last wave over all waves"
LANES = "active threads per warp instruction"
INTEGER, SPECIAL, USEFUL = "integer pipe", "special function pipe", "multiply-add and tensor pipes"
LAUNCHES, PER_LAUNCH, ON_DEVICE = "launches in one call", "microseconds per launch", "device time in the call's time"
LEAST_MEMORY, LEAST_COMPUTE = "share of the memory limit at least", "share of the arithmetic limit at least"
LEAST_BUSIEST = "larger share of the two limits at least"
PER_CALL, FAULTS = "microseconds per call", "time for page faults in the call's time"
PROCESSORS, WORKING, AWAKE = "processors", "threads that work over processors", "processor time over processors' time"
PACKED, LIBRARY_CALLS = "packed of all arithmetic instructions", "scalar library calls in the code"
PER_CYCLE, REFETCHED = "instructions per cycle", "cache lines missed over the task's least bytes"

LATENCY = "latency"  # the metric that only a processor's profile has
FAULT_COST_S = 5e-7  # a minor page fault with its zeroed page, measured
LINE_BYTES = 64
HARDLY_MORE = 1.2  # bytes moved over the task's least
BUSIEST_PART = 0.98  # of what is busiest in the memory path, which is rounded
FULL = 99.5  # occupancy that nothing limits
_GLOBAL_REASONS = ("long_scoreboard", "lg_throttle")
_SHARED_REASONS = ("short_scoreboard", "mio_throttle")
_CHAIN_REASONS = ("barrier", "membar", "wait", "branch_resolving", "no_instruction", "dispatch_stall", "drain")
_SECTOR_COUNTERS = tuple(f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{kind}.pct" for kind in ("ld", "st"))
_PIPES = {
    INTEGER: ("sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active",),
    SPECIAL: ("sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",),
    USEFUL: (
        "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    ),
}


def is_of_host(profile: ProfileResult) -> bool:
    """Whether it was taken on a processor."""
    return any(metric.name == LATENCY for metric in profile.metrics)


def of_host(profile: ProfileResult) -> dict[str, float]:
    """Of a profile as `engine.evaluator.profiling.cpu_profile` makes it."""
    value = _values(profile.metrics)
    seconds = value.get(LATENCY, 0.0)
    figures = _percent(value, {MEMORY: "memory throughput share", COMPUTE: "arithmetic throughput share"})
    figures |= _of_two_peaks(figures)
    if seconds > 0:
        figures[PER_CALL] = seconds * 1e6
        if "page faults per call" in value:
            figures[FAULTS] = 100 * value["page faults per call"] * FAULT_COST_S / seconds
    if processors := value.get("processors available"):
        figures[PROCESSORS] = processors
        if "working threads" in value:
            figures[WORKING] = 100 * value["working threads"] / processors
        elif "processors busy" in value:
            figures[AWAKE] = 100 * value["processors busy"] / processors
    if arithmetic := value.get("packed instructions", 0.0) + value.get("scalar instructions", 0.0):
        figures[PACKED] = 100 * value.get("packed instructions", 0.0) / arithmetic
    if "libm calls instructions" in value:
        figures[LIBRARY_CALLS] = value["libm calls instructions"]
    if cycles := value.get("cycles per call"):
        figures[PER_CYCLE] = value.get("instructions per call", 0.0) / cycles
    if (least := value.get("memory throughput", 0.0) * seconds) and "cache-misses per call" in value:
        figures[REFETCHED] = value["cache-misses per call"] * LINE_BYTES / least
    return figures


def of_device(profile: ProfileResult, timed_ms: float | None = None, min_bytes: int = 0) -> dict[str, float]:
    """Of a profile as `engine.evaluator.profiling.device.profile` makes it, with or without hardware counters. One that
    holds only the first launches tells nothing of how many the call has, what all of them take or what they move."""
    whole = _values(metric for metric in profile.metrics if metric.launch < 0)
    launches: dict[int, list[Metric]] = {}
    for metric in profile.metrics:
        if metric.launch >= 0:
            launches.setdefault(metric.launch, []).append(metric)
    each = [_values(metrics) for metrics in launches.values()]
    longest = max(each, key=lambda values: values.get(counters.TIME, 0.0), default=dict[str, float]())
    figures = {name: whole[counter] for name, counter in _WHOLE.items() if counter in whole}
    min_bytes = 0 if profile.is_cut else min_bytes
    figures |= _of_two_peaks(figures) | _waits(whole) | _memory(whole, longest, min_bytes)
    figures |= _pipes(whole) | _filling(longest) | _launches(whole, each, timed_ms)
    least = _percent(
        whole,
        {
            LEAST_MEMORY: "memory throughput at least, share",
            LEAST_COMPUTE: "arithmetic throughput at least, share",
        },
    )
    figures |= least | ({LEAST_BUSIEST: max(least.values())} if least else {})
    of_whole = (LAUNCHES, ON_DEVICE) if profile.is_cut else ()
    return {name: value for name, value in figures.items() if name not in of_whole}


_WHOLE = {
    MEMORY: counters.MEMORY,
    COMPUTE: counters.COMPUTE,
    DRAM: counters.DRAM,
    OCCUPANCY: counters.ACHIEVED,
    LANES: "smsp__thread_inst_executed_per_inst_executed.ratio",
}


def _values(metrics: Iterable[Metric]) -> dict[str, float]:
    """By name, the finite ones; a name with a row per function counts once."""
    return {metric.name: metric.value for metric in metrics if math.isfinite(metric.value)}


def _percent(value: Mapping[str, float], names: Mapping[str, str]) -> dict[str, float]:
    return {ours: 100 * value[theirs] for ours, theirs in names.items() if theirs in value}


def _of_two_peaks(figures: Mapping[str, float]) -> dict[str, float]:
    """What follows from the two shares; with one of them only which is the larger."""
    shares = [figures[name] for name in (MEMORY, COMPUTE) if name in figures]
    if len(shares) < 2:
        return {BUSIEST: max(shares)} if shares else {}
    larger, smaller = max(shares), min(shares)
    lead = {LEAD: shares[0] / shares[1] if shares[1] else math.inf}
    return lead | {BUSIEST: larger, LESSER: smaller, CLOSENESS: 100 * smaller / larger if larger else 0.0}


def _waits(whole: Mapping[str, float]) -> dict[str, float]:
    """Shares of the time that warps wait; one that is issued does not wait. Older profiles of several launches do not
    tell these of the whole call: what was decided by their averages of cycles is decided by them again."""
    told = {reason: value for name, value in whole.items() if (reason := counters.wait_share_reason(name)) is not None}
    waits = {reason: value for name, value in whole.items() if (reason := counters.stall_reason(name)) is not None}
    waits.pop("selected", None)
    waits = told or waits
    total = sum(waits.values())
    groups = {MEMORY_WAITS: _GLOBAL_REASONS, SHARED_WAITS: _SHARED_REASONS, CHAIN_WAITS: _CHAIN_REASONS}
    if not total:
        return {}
    return {name: 100 * sum(waits.get(reason, 0.0) for reason in group) / total for name, group in groups.items()}


def _memory(whole: Mapping[str, float], longest: Mapping[str, float], min_bytes: int) -> dict[str, float]:
    figures: dict[str, float] = {}
    used = [whole[name] for name in _SECTOR_COUNTERS if whole.get(name)]  # 0: the kernel has no such access
    if used and not _moves_the_least(whole, min_bytes):
        figures[SECTORS] = min(used)
    pairs = [(name, counters.BY_NAME[name].part_of) for name in counters.CONFLICTS]
    turns = sum(whole.get(part, 0.0) for _, part in pairs)
    if turns:
        figures[CONFLICTS] = 100 * sum(whole.get(name, 0.0) for name, _ in pairs) / turns
    if min_bytes and "memory traffic" in whole:
        figures[TRAFFIC] = whole["memory traffic"] / min_bytes
    local = [whole[name] for name in (counters.LOCAL_LOADS, counters.LOCAL_STORES) if name in whole]
    if local and (executed := whole.get(counters.EXECUTED) or longest.get(counters.EXECUTED)):
        figures[SPILLS] = 100 * sum(local) / executed
    return figures


def _moves_the_least(whole: Mapping[str, float], min_bytes: int) -> bool:
    """Whether device memory is the busiest part of the memory path and moves hardly more than the task needs.

    Then no fetched sector is wasted, whatever the sector counters say: they know ordinary accesses alone, so of a
    kernel whose tensors go by `cp.async` or TMA they tell how its few weights are read.
    """
    traffic, busiest = whole.get("memory traffic"), whole.get(counters.MEMORY)
    if not min_bytes or traffic is None or busiest is None:
        return False
    return traffic <= HARDLY_MORE * min_bytes and whole.get(counters.DRAM, 0.0) >= BUSIEST_PART * busiest


def _pipes(whole: Mapping[str, float]) -> dict[str, float]:
    values_of = {name: [whole[pipe] for pipe in pipes if pipe in whole] for name, pipes in _PIPES.items()}
    return {name: max(values) for name, values in values_of.items() if values}


def _filling(longest: Mapping[str, float]) -> dict[str, float]:
    """What the longest launch was given of the device."""
    figures = {FITS: longest[counters.THEORETICAL]} if counters.THEORETICAL in longest else {}
    if (waves := longest.get(counters.WAVES)) is not None and waves > 0:
        figures[WAVES] = waves
        if waves > 1:
            figures[TAIL] = 100 * (1 - waves / math.ceil(waves))
    start = counters.OCCUPANCY_LIMIT
    blocks = {name.removeprefix(start): value for name, value in longest.items() if name.startswith(start)}
    if blocks and figures.get(FITS, 0.0) < FULL:
        least = min(blocks.values())
        figures |= {
            name: float(blocks.get(resource) == least)
            for name, resource in ((BY_REGISTERS, "registers"), (BY_SHARED, "shared_mem"))
        }
    return figures


def _launches(whole: Mapping[str, float], each: list[dict[str, float]], timed_ms: float | None) -> dict[str, float]:
    seconds = whole.get("device time")
    count = whole.get("launches") or float(len(each))
    if not seconds or not count:
        return {}
    per_launch = sum(launch.get(counters.TIME, 0.0) for launch in each) / len(each) if each else seconds / count
    figures = {LAUNCHES: count, PER_LAUNCH: 1e6 * per_launch}
    return figures | ({ON_DEVICE: 100 * seconds * 1e3 / timed_ms} if timed_ms else {})
