"""How near a kernel is to what the machine could do at best for its task, in words with what they assume. Pure."""

from __future__ import annotations

from pages.parts import wording
from storage.results.hardware_limit import HardwareLimit

CACHE = 1.1  # a rate this far above device memory's bandwidth is helped by a cache


def share(limit: HardwareLimit | None, latency_ms: float | None) -> float | None:
    """The limit's time over the kernel's, 1 on the limit; None where either is unknown."""
    return limit.limit_ms / latency_ms if limit and latency_ms and limit.limit_ms > 0 else None


def percent(limit: HardwareLimit | None, latency_ms: float | None) -> str:
    """`83 %`, or a dash."""
    attained = share(limit, latency_ms)
    return wording.NONE if attained is None else f"{wording.significant(100 * attained, 2)} %"


def sentence(limit: HardwareLimit, latency_ms: float | None, memory_rate: float | None = None) -> str:
    """The limit, what it assumes, and how much of it was reached. `memory_rate` in bytes per second is that of device
    memory, where the profile knows it."""
    moving = f"moving its {wording.quantity(float(limit.min_bytes), 'B')} at {_bandwidth(limit, memory_rate)}"
    if limit.min_flop:
        peak = wording.quantity(limit.peak_gflop_s * 1e9, "FLOP/s")
        work = f"its {wording.quantity(float(limit.min_flop), 'FLOP')} at {peak}"
        longer, shorter = (work, moving) if limit.compute_ms > limit.memory_ms else (moving, work)
        moving = f"{longer}, which takes longer than {shorter}"
    text = f"Limit (theoretical minimum latency) {wording.latency(limit.limit_ms)}: {moving}."
    if share(limit, latency_ms) is None:
        return text
    return f"{text} This kernel takes {wording.latency(latency_ms)}: {percent(limit, latency_ms)} of the limit."


def _bandwidth(limit: HardwareLimit, memory_rate: float | None) -> str:
    bandwidth = wording.quantity(limit.bandwidth_gb_s * 1e9, "B/s")
    if not memory_rate:
        return bandwidth
    if limit.bandwidth_gb_s * 1e9 > CACHE * memory_rate:
        return f"{bandwidth} (measured with copies of that size: part of the data stays in the caches)"
    return f"{bandwidth} (device memory bandwidth)"
