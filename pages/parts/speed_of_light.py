"""How near a kernel is to what the machine could do at best for its task, in words with what they assume. Pure."""

from __future__ import annotations

from pages.parts import wording
from storage.hardware_limit import HardwareLimit

CACHE = 1.1  # a rate this far above device memory's bandwidth is helped by a cache


def share(limit: HardwareLimit | None, latency_ms: float | None) -> float | None:
    """The limit's time over the kernel's, 1 on the limit; None where either is unknown."""
    return limit.limit_ms / latency_ms if limit and latency_ms and limit.limit_ms > 0 else None


def percent(limit: HardwareLimit | None, latency_ms: float | None) -> str:
    """`83 %`, or a dash."""
    found = share(limit, latency_ms)
    return wording.NONE if found is None else f"{wording.significant(100 * found, 2)} %"


def sentence(limit: HardwareLimit, latency_ms: float | None, memory_rate: float | None = None) -> str:
    """The limit, what it assumes, and how much of it was reached. `memory_rate` in bytes per second is that of device
    memory, where the profile knows it."""
    bandwidth = wording.quantity(limit.bandwidth_gb_s * 1e9, "B/s")
    where = ""
    if memory_rate:
        is_cache = limit.bandwidth_gb_s * 1e9 > CACHE * memory_rate
        where = (
            " (measured with copies of that size: part of the data stays in the caches)"
            if is_cache
            else " (device memory bandwidth)"
        )
    text = (
        f"Theoretical minimum {wording.latency(limit.limit_ms)}: the task moves at least "
        f"{wording.quantity(float(limit.min_bytes), 'B')} at {bandwidth}{where}"
        + (f" and does {wording.quantity(float(limit.min_flop), 'FLOP')}" if limit.min_flop else "")
        + "."
    )
    if share(limit, latency_ms) is None:
        return text
    return f"{text} This kernel takes {wording.latency(latency_ms)}: {percent(limit, latency_ms)} of the limit."
