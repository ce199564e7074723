"""What limits a kernel, from measured shares of the machine's limits. A pure function with its thresholds."""

from __future__ import annotations

from enum import StrEnum

NEAR_ROOF = 0.6
TINY_MS = 0.03
FAULT_COST_MS = 0.0005
OVERHEAD_SHARE = 0.3


class Bound(StrEnum):
    """The four answers shown to people and to the model."""

    MEMORY = "memory"
    COMPUTE = "compute"
    OVERHEAD = "overhead"
    LATENCY = "latency"


def of(
    memory_share: float, compute_share: float, latency_ms: float, minor_faults: float, packed_share: float | None
) -> Bound:
    """Memory or compute when near that roof; overhead when little of the call is the kernel; else what keeps it busy.

    Far from both roofs, mostly scalar arithmetic means the instruction stream is the limit (compute); vector code that
    reaches neither roof waits for something (latency).
    """
    if latency_ms < TINY_MS or minor_faults * FAULT_COST_MS > OVERHEAD_SHARE * latency_ms:
        return Bound.OVERHEAD
    if max(memory_share, compute_share) >= NEAR_ROOF:
        return Bound.MEMORY if memory_share >= compute_share else Bound.COMPUTE
    is_scalar = packed_share is not None and packed_share < 0.5
    return Bound.COMPUTE if is_scalar else Bound.LATENCY
