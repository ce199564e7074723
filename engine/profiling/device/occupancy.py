"""How many warps fit on a multiprocessor, from a launch's resources alone: the CUDA occupancy calculator's way."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.profiling.device.ceilings import DeviceCeilings

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


def theoretical(here: DeviceCeilings, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """Of a launch with so many threads per block, registers per thread and shared bytes per block (all kinds)."""
    warps = max(1, math.ceil(threads / WARP))
    blocks_by = {
        "warps": here.warps // warps,
        "blocks": here.blocks,
        "registers": _by_registers(here, warps, registers),
        "shared memory": _by_shared(here, shared_bytes),
    }
    limiter = smallest(blocks_by)
    return Occupancy(100.0 * min(blocks_by.values()) * warps / here.warps, blocks_by, limiter)


def smallest(blocks_by: dict[str, int]) -> str:
    """The resource that lets the fewest blocks in; several of them together where they tie."""
    least = min(blocks_by.values())
    return " and ".join(name for name, blocks in blocks_by.items() if blocks == least)


def _by_registers(here: DeviceCeilings, warps: int, registers: int) -> int:
    if registers <= 0:
        return here.blocks
    per_warp = math.ceil(registers * WARP / REGISTER_UNIT) * REGISTER_UNIT
    return here.registers // QUARTERS // per_warp * QUARTERS // warps


def _by_shared(here: DeviceCeilings, shared_bytes: int) -> int:
    per_block = math.ceil((shared_bytes + here.reserved_shared_bytes) / SHARED_UNIT) * SHARED_UNIT
    return here.shared_bytes // per_block
