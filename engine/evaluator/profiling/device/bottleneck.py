"""What a device profile says: bottleneck, headroom, occupancy and what limits it, signals. Pure functions with
thresholds. Occupancy follows from a launch's resources alone: the CUDA occupancy calculator's way."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.evaluator.profiling.device.ceilings import DeviceCeilings
from engine.evaluator.profiling.device.launch_counters import Launch, Whole
from storage.results import counters
from storage.results.profile_results import NEAR_PEAK, Advice

WARP = 32
REGISTER_UNIT = 256  # registers are given to a warp in such steps
SHARED_UNIT = 128
QUARTERS = 4  # a multiprocessor's schedulers, each with a quarter of the registers


@dataclass(frozen=True, slots=True)
class Occupancy:
    """`percent` of the most possible warps; blocks that fit by each resource; `limiter` is the smallest of them."""

    percent: float
    blocks_by: dict[str, int]
    limiter: str


def theoretical_occupancy(ceilings: DeviceCeilings, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """The occupancy of a launch with so many threads per block, registers per thread and shared bytes per block (all
    kinds)."""
    warps = max(1, math.ceil(threads / WARP))
    blocks_by = {
        "warps": ceilings.warps // warps,
        "blocks": ceilings.blocks,
        "registers": _by_registers(ceilings, warps, registers),
        "shared memory": _by_shared(ceilings, shared_bytes),
    }
    limiter = smallest_limit(blocks_by)
    return Occupancy(100.0 * min(blocks_by.values()) * warps / ceilings.warps, blocks_by, limiter)


def smallest_limit(blocks_by: dict[str, int]) -> str:
    """The resource that lets the fewest blocks in; several of them together where they tie."""
    least = min(blocks_by.values())
    return " and ".join(name for name, blocks in blocks_by.items() if blocks == least)


def _by_registers(ceilings: DeviceCeilings, warps: int, registers: int) -> int:
    if registers <= 0:
        return ceilings.blocks
    per_warp = math.ceil(registers * WARP / REGISTER_UNIT) * REGISTER_UNIT
    return ceilings.registers // QUARTERS // per_warp * QUARTERS // warps


def _by_shared(ceilings: DeviceCeilings, shared_bytes: int) -> int:
    per_block = math.ceil((shared_bytes + ceilings.reserved_shared_bytes) / SHARED_UNIT) * SHARED_UNIT
    return ceilings.shared_bytes // per_block


TINY_S = 5e-6
TRAFFIC = 1.3


class Bottleneck(StrEnum):
    """Memory or compute near its peak; else latency where the machine is full of warps, underutilised if not."""

    MEMORY = "memory"
    COMPUTE = "compute"
    LATENCY = "latency"
    UNDERUTILISED = "underutilised"
    UNKNOWN = "unknown"


def bottleneck(memory: float | None, compute: float | None, waves: float | None) -> Bottleneck:
    """From shares of peak in percent, of a launch or of a whole call. A grid of less than one wave fills no machine."""
    if memory is None or compute is None:
        return Bottleneck.UNKNOWN
    if max(memory, compute) >= 100 * NEAR_PEAK:
        return Bottleneck.MEMORY if memory >= compute else Bottleneck.COMPUTE
    return Bottleneck.UNDERUTILISED if waves is not None and waves < 1.0 else Bottleneck.LATENCY


def of_launch(launch: Launch) -> Bottleneck:
    """The bottleneck of one launch."""
    return bottleneck(*(launch.value(name) for name in (counters.MEMORY, counters.COMPUTE, counters.WAVES)))


def of_call(launches: Sequence[Launch], whole: Whole) -> Bottleneck:
    """The bottleneck of the whole call: shares averaged by duration, waves of the launch that takes longest."""
    longest = max(launches, key=lambda launch: launch.value(counters.TIME) or 0.0, default=None)
    waves = longest.value(counters.WAVES) if longest else None
    return bottleneck(whole.average(counters.MEMORY), whole.average(counters.COMPUTE), waves)


def headroom(memory: float | None, compute: float | None) -> float | None:
    """Percent of peak that the busier side leaves unused."""
    shares = [value for value in (memory, compute) if value is not None]
    return 100.0 - max(shares) if shares else None


def limiter(launch: Launch) -> str:
    """The resource that keeps occupancy below full, empty when it is full or not known."""
    percent = launch.value(counters.THEORETICAL)
    start = counters.OCCUPANCY_LIMIT
    blocks = {
        name.removeprefix(start).replace("_mem", " memory"): int(value)
        for name, (_, value) in launch.values.items()
        if name.startswith(start)
    }
    return smallest_limit(blocks) if blocks and percent is not None and percent < 99.5 else ""


def signals(launch: Launch) -> Iterator[str]:
    """Sentences on combinations of values that point at one cause."""
    value = launch.value
    registers, achieved = value(counters.REGISTERS) or 0, value(counters.ACHIEVED)
    memory, compute = value(counters.MEMORY), value(counters.COMPUTE)
    if registers >= 96 and achieved is not None and achieved <= 40:
        yield f"register pressure: {registers:.0f} registers per thread at {achieved:.0f} % occupancy"
    if value(counters.LOCAL_LOADS) or value(counters.LOCAL_STORES):
        yield "local memory is used: registers were spilled, or an array is indexed at run time"
    if memory is not None and compute is not None:
        yield from _balance(memory, compute)
    waves = value(counters.WAVES)
    if waves is not None:
        yield from _filling(waves)
    if (value(counters.TIME) or 1.0) < TINY_S:
        yield "so short that starting it weighs as much as the work"


def ranked(advice: Iterable[Advice], launches: Sequence[Launch]) -> list[Advice]:
    """What could save most of the whole call first: a gain counts by its launch's share of the time."""
    took = {launch.number: launch.value(counters.TIME) or 0.0 for launch in launches}
    return sorted(advice, key=lambda piece: (-(piece.gain_percent or 0.0) * took.get(piece.launch, 0.0), piece.launch))


def traffic(whole: Whole, min_bytes: int) -> float | None:
    """Device-memory bytes over the least that the task must move; None when one is not known."""
    return whole.dram_bytes / min_bytes if whole.dram_bytes is not None and min_bytes else None


def _balance(memory: float, compute: float) -> Iterator[str]:
    if memory >= 70 and compute <= 50:
        yield "clearly bound by the memory path"
    elif compute >= 70 and memory <= 50:
        yield "clearly bound by arithmetic or issue"
    elif memory <= 40 and compute <= 40:
        yield "neither memory nor arithmetic is busy: structure, latency or too little work"


def _filling(waves: float) -> Iterator[str]:
    if waves < 1:
        yield f"the grid fills {100 * waves:.0f} % of one wave: multiprocessors or block slots stay empty"
    elif waves < 4 and 0 < waves % 1 < 0.5:
        yield f"a tail: the last of {waves:.1f} waves is mostly empty"
