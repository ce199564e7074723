"""Profiles of synthetic runs, on a device with counters and on a host; each depth a little better than the last."""

from __future__ import annotations

from collections.abc import Iterator

from storage.results import counters
from storage.results.profile_results import Metric, ProfileResult, SourceLine

CEILINGS = {"memory": 4.3e12, "fp32": 6.6e13, "tf32": 4.5e14}
WAITS = (("long_scoreboard", 0.9), ("barrier", 1.05), ("mio_throttle", 1.02), ("not_selected", 1.1), ("selected", 1.0))
LIMITS = (("registers", 4.0), ("shared_mem", 3.0), ("warps", 8.0), ("blocks", 32.0))
KERNEL = "void kernel<128, 128, 8>(const float *)"
LINES = (
    SourceLine(KERNEL, "", 4, 700, "long_scoreboard", 650),
    SourceLine(KERNEL, "include/cute/tensor_impl.hpp", 241, 300, "barrier", 120, "return data()[layout()(coord)];"),
    SourceLine(KERNEL, "", 7, 200, "mio_throttle", 90),
)


def on_device(depth: int, latency_ms: float, kernel_hash: str) -> ProfileResult:
    """As Nsight Compute gives it, in fewer counters."""
    share = min(95.0, 30.0 + 6.0 * depth)
    return ProfileResult(
        kernel_hash,
        tuple(_device(depth, share, latency_ms / 1e3)),
        "memory",
        f"Memory-bound at {share:.0f} %.\nOccupancy 50 % possible, {46 + depth} % achieved, limited by shared memory.",
        ceilings=CEILINGS,
        evidence={"way": "hardware counters", "profiler": "Nsight Compute", "device": "sample device"},
        lines=LINES,
        samples=1200,
    )


def on_host(depth: int, latency_ms: float, kernel_hash: str) -> ProfileResult:
    """As the cpu toolchain gives it."""
    found = (
        ("latency", "s", latency_ms / 1e3),
        ("memory throughput", "B/s", 4e9 + 1e9 * depth),
        ("memory throughput share", "1", 0.1 + 0.03 * depth),
        ("arithmetic throughput", "FLOP/s", 2e10 + 5e9 * depth),
        ("arithmetic throughput share", "1", 0.15 + 0.04 * depth),
        ("threads used", "1", min(2.0, 1.0 + 0.3 * depth)),
        ("threads available", "1", 2.0),
        ("page faults per call", "1", max(0.0, 4000.0 - 900.0 * depth)),
        ("packed instructions", "1", 12.0 + 8 * depth),
        ("scalar instructions", "1", max(0.0, 40.0 - 6 * depth)),
    )
    metrics = (*(Metric(*one) for one in found), Metric("sampled time share", "1", 0.81, "product (1.so)"))
    missing = ("cycles", "instructions")
    return ProfileResult(kernel_hash, metrics, "latency", f"Threads: {found[5][2]:.2f} of 2 busy.", missing=missing)


def _device(depth: int, share: float, seconds: float) -> Iterator[Metric]:
    whole = (
        ("device time", "s", seconds), ("launches", "1", 1.0), ("memory traffic", "B", 3e7 / (1 + 0.2 * depth)),
        ("memory throughput share", "1", share / 100), ("arithmetic throughput", "FLOP/s", 2e12 * (1 + 0.5 * depth)),
        ("arithmetic intensity", "FLOP/B", 20.0 + 8 * depth), (counters.DRAM, "%", share),
        (counters.ACHIEVED, "%", 46.0 + depth), (counters.COMPUTE, "%", 22.0 + 4 * depth),
    )  # fmt: skip
    yield from (Metric(*one) for one in whole)
    yield from (Metric(counters.stall_counter(why), "1", 6.0 * by ** min(depth, 200)) for why, by in WAITS)
    launch = (
        (counters.TIME, "s", seconds), (counters.GRID, "1", 1024.0), (counters.BLOCK, "1", 256.0),
        (counters.REGISTERS, "1", 96.0 - 2 * depth), (counters.DYNAMIC_SHARED, "B", 34816.0),
        (counters.THEORETICAL, "%", 50.0), (counters.ACHIEVED, "%", 46.0 + depth), (counters.DRAM, "%", share),
        (counters.COMPUTE, "%", 22.0 + 4 * depth), (counters.WAVES, "1", 2.6),
        *((f"{counters.OCCUPANCY_LIMIT}{what}", "1", blocks) for what, blocks in LIMITS),
    )  # fmt: skip
    yield from (Metric(*one, kernel=KERNEL, launch=0) for one in launch)
