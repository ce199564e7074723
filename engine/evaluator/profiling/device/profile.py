"""A candidate's profile on the device: Nsight Compute where it may count, else what can be had without counters.

Knows neither evaluator nor sandbox: the folder is prepared, and how programs run is handed in.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.errors import ProfileUnavailable
from engine.evaluator.profiling.device import bottleneck, launch_counters, nsight, summary, without_counters
from engine.evaluator.profiling.device.ceilings import DeviceCeilings
from engine.evaluator.profiling.device.launch_counters import Launch, Whole
from engine.evaluator.profiling.device.nsight import Collected, Nothing, Run
from engine.evaluator.profiling.device.source_lines import Sampled
from engine.evaluator.profiling.device.without_counters import Watched
from storage.results import counters
from storage.results.counters import Tier
from storage.results.hardware_limit import HardwareLimit
from storage.results.profile_results import LAUNCHES, Metric, ProfileResult

NO_PROFILER = "Nsight Compute (ncu) is not installed here"
DETAILED = 8
NAME_LENGTH = 600
OUTLINE = {
    counters.TIME, counters.GRID, counters.BLOCK, counters.WAVES, counters.REGISTERS, counters.STATIC_SHARED,
    counters.DYNAMIC_SHARED, counters.THEORETICAL, counters.ACHIEVED, counters.COMPUTE, counters.MEMORY, counters.DRAM,
}  # fmt: skip
COUNTED = "Nsight Compute"
WITHOUT_COUNTERS = "without hardware counters"


@dataclass(frozen=True, slots=True)
class Subject:
    """What is profiled: a folder as `engine.evaluator.profiling.device.target` wants it, and what it is compared with.

    `cache` keeps what is asked of the profiler once; `limit_s` bounds each program that is run.
    """

    folder: Path
    kernel_hash: str
    ceilings: DeviceCeilings
    limit: HardwareLimit
    cache: Path
    limit_s: float = 120.0
    python: str = sys.executable


def profile(subject: Subject, ncu: str | None, run: Run) -> ProfileResult:
    """Profile one call of the candidate; the result's evidence says which way it was taken.

    Raises:
        ProfileUnavailable: the candidate ran neither under the profiler nor without it.
    """
    started = time.monotonic()
    folder, ceilings, limit_s = subject.folder, subject.ceilings, subject.limit_s
    nothing = nsight.Nothing(NO_PROFILER)
    if ncu:
        collected = nsight.collect(folder, ncu, run, ceilings.capability, subject.cache, limit_s, subject.python)
        if isinstance(collected, Collected):
            return counted(subject.kernel_hash, collected, ceilings, subject.limit, time.monotonic() - started)
        nothing = collected
    seen, done = without_counters.watch(folder, run, ceilings, limit_s, subject.python)
    if seen is None:
        reason = "it took too long" if done.is_timeout else nsight.last_error(done.output)
        raise ProfileUnavailable(f"{nothing.reason}; and without counters the candidate did not run: {reason}")
    taken_s = time.monotonic() - started
    return watched(subject.kernel_hash, seen, nothing, ceilings, subject.limit, taken_s)


def counted(
    kernel_hash: str, collected: Collected, ceilings: DeviceCeilings, limit: HardwareLimit, seconds: float
) -> ProfileResult:
    """The result of a profile with hardware counters."""
    together = launch_counters.whole_of(collected.launches)
    shown = [name for name in collected.missing if _is_shown(name)]
    seen = summary.Seen(
        collected.launches, together, collected.advice, ceilings, limit, COUNTED, shown, collected.is_cut
    )
    evidence = {
        "way": "hardware counters",
        "profiler": f"Nsight Compute {collected.version}",
        "passes": str(collected.passes),
        "clocks": nsight.CLOCKS,
        "caches": nsight.CACHES,
        **_device(ceilings),
        **({LAUNCHES: f"only the first {len(collected.launches)} were profiled"} if collected.is_cut else {}),
        **_source_lines(collected.sampled),
        **({} if collected.report else {"report": f"{collected.report_bytes / 1e6:.1f} MB, too large to keep"}),
    }
    return ProfileResult(
        kernel_hash=kernel_hash,
        metrics=(*_whole_metrics(together, collected.launches, ceilings), *_metrics(collected.launches)),
        bound=str(bottleneck.of_call(collected.launches, together)),
        summary=summary.text(seen),
        raw=collected.text,
        seconds=seconds,
        missing=tuple(shown),
        advice=tuple(collected.advice),
        ceilings=ceilings.by_name(),
        evidence=evidence,
        report=collected.report,
        lines=tuple(collected.sampled.lines) if collected.sampled else (),
        samples=collected.sampled.samples if collected.sampled else 0,
        sass=collected.sampled.sass if collected.sampled else "",
    )


def _source_lines(sampled: Sampled | None) -> dict[str, str]:
    if sampled is None:
        return {"source lines": "not available: the profiler printed none that can be read"}
    return {"source lines": sampled.of} if sampled.of else {}


def watched(
    kernel_hash: str, trace: Watched, why: Nothing, ceilings: DeviceCeilings, limit: HardwareLimit, seconds: float
) -> ProfileResult:
    """The result from the trace and the compiler. What is near a limit is known to be bound by it; the rest stays
    unknown."""
    together = launch_counters.whole_of(trace.launches)
    taken_s = (trace.latency_ms or 0.0) / 1e3 or together.seconds
    memory, compute = least_shares(limit, taken_s)
    near = bottleneck.bottleneck(memory, compute, None)
    is_near = near in (bottleneck.Bottleneck.MEMORY, bottleneck.Bottleneck.COMPUTE)
    bound = near if is_near else bottleneck.Bottleneck.UNKNOWN
    return ProfileResult(
        kernel_hash=kernel_hash,
        metrics=(*_least_metrics(limit, taken_s, memory, compute), *_metrics(trace.launches)),
        bound=str(bound),
        summary="\n".join(summary.without_counters(trace, why.reason, bound, (memory, compute), taken_s, ceilings)),
        raw=f"{why.said}\n{trace.text}",
        seconds=seconds,
        missing=tuple(
            counter.name
            for counter in counters.COUNTERS
            if _is_shown(counter.name) and not _has(trace.launches, counter.name)
        ),
        ceilings=ceilings.by_name(),
        evidence={"way": WITHOUT_COUNTERS, "because": why.reason, **_remedy(why), **_device(ceilings)},
    )


def least_shares(limit: HardwareLimit, seconds: float) -> tuple[float, float]:
    """Percent of the limits that the task's least bytes and operations are, so lower bounds of what was reached."""
    if seconds <= 0:
        return 0.0, 0.0
    return limit.memory_ms / 10 / seconds, 100 * limit.min_flop / (limit.peak_gflop_s * 1e9) / seconds


def _metrics(launches: Sequence[Launch]) -> Iterator[Metric]:
    """What people may read of each launch, under the profiler's own names; of many, the longest in full."""
    longest = sorted(launches, key=lambda launch: -(launch.value(counters.TIME) or 0.0))[:DETAILED]
    for launch in launches:
        for name, (unit, value) in launch.values.items():
            is_wanted = _is_kept(name) or "__" not in name
            if is_wanted and (launch in longest or _is_outline(name)):
                yield Metric(name, unit, value, launch.kernel[:NAME_LENGTH], launch.number)


def _is_outline(name: str) -> bool:
    return name in OUTLINE or name.startswith(counters.OCCUPANCY_LIMIT)


def _whole_metrics(together: Whole, launches: Sequence[Launch], ceilings: DeviceCeilings) -> Iterator[Metric]:
    yield Metric("device time", "s", together.seconds)
    yield Metric("launches", "1", float(len(launches)))
    if together.bandwidth is not None and together.dram_bytes is not None:
        yield Metric("memory traffic", "B", together.dram_bytes)
        yield Metric("memory throughput", "B/s", together.bandwidth)
        yield Metric("memory throughput share", "1", together.bandwidth / (ceilings.bandwidth_gb_s * 1e9))
    yield from _arithmetic(together, ceilings)
    room = bottleneck.headroom(together.average(counters.MEMORY), together.average(counters.COMPUTE))
    if room is not None:
        yield Metric("headroom", "%", room)
    for name, (unit, value) in together.averages.items():
        if _is_kept(name) and name != counters.TIME:
            yield Metric(name, unit, value)
    if len(launches) > 1:
        for reason, share in launch_counters.stall_shares(launches).items():
            yield Metric(f"{counters.WAIT_SHARE}{reason}", "%", 100 * share)


def _arithmetic(together: Whole, ceilings: DeviceCeilings) -> Iterator[Metric]:
    if not together.flop or together.rate is None:
        return
    yield Metric("arithmetic throughput", "FLOP/s", together.rate)
    peak = ceilings.by_name().get(together.main_kind)
    if peak:
        yield Metric("arithmetic throughput share", "1", together.rate / peak)
    if together.intensity is not None:
        yield Metric("arithmetic intensity", "FLOP/B", together.intensity)
    for kind, value in together.flop.items():
        yield Metric(f"{kind}{counters.OPERATIONS_OF}", "FLOP", value)


def _least_metrics(limit: HardwareLimit, seconds: float, memory: float, compute: float) -> Iterator[Metric]:
    if seconds > 0:
        yield Metric("device time", "s", seconds)
        yield Metric("memory throughput at least", "B/s", limit.min_bytes / seconds)
        yield Metric("memory throughput at least, share", "1", memory / 100)
        yield Metric("arithmetic throughput at least", "FLOP/s", limit.min_flop / seconds)
        yield Metric("arithmetic throughput at least, share", "1", compute / 100)


def _is_shown(name: str) -> bool:
    if counters.stall_reason(name) is not None:
        return True
    return name in counters.BY_NAME and counters.BY_NAME[name].tier is not Tier.COUNT


def _is_kept(name: str) -> bool:
    """What is shown, and what that is a share of."""
    return _is_shown(name) or name in counters.WHOLES


def _has(launches: Sequence[Launch], name: str) -> bool:
    return any(name in launch.values for launch in launches)


def _remedy(why: Nothing) -> dict[str, str]:
    return {"what to do": nsight.ALLOW_COUNTERS} if nsight.REFUSED in why.reason else {}


def _device(ceilings: DeviceCeilings) -> dict[str, str]:
    return {"device": ceilings.device, "compute capability": ceilings.capability, "driver": ceilings.driver}
