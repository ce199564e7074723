"""One launch in words for the model: its shape, its shares of peak, and what is out of its normal range."""

from __future__ import annotations

from collections.abc import Iterator

from engine.profiling.device import findings, whole
from engine.profiling.device.pages import Launch
from storage import counters
from storage.counters import Tier
from storage.kernel_names import short

STALL_SHARE = 0.1
MINOR_SHARE = 0.05
CACHES = (
    "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed",
)


def lines(launch: Launch, total_s: float) -> Iterator[str]:
    """A heading, and for a launch that matters to a call of `total_s` seconds the rest."""
    value = launch.value
    took = value(counters.TIME)
    share = f" ({percent(100 * took / total_s)} of the time)" if took and total_s else ""
    yield f"Launch {launch.number}: {short(launch.kernel)}{', ' + duration(took) if took else ''}{share}"
    if took and took < MINOR_SHARE * total_s:
        return
    yield "  " + "; ".join(_shape(launch))
    yield "  " + "; ".join(_shares(launch))
    for line in [*_unusual(launch), *_stalls(launch), *(f"signal: {one}" for one in findings.signals(launch))]:
        yield f"  {line}"


def _shape(launch: Launch) -> Iterator[str]:
    value = launch.value
    if (grid := value(counters.GRID)) is not None and (block := value(counters.BLOCK)) is not None:
        yield f"{grid:.0f} blocks of {block:.0f} threads"
    if (registers := value(counters.REGISTERS)) is not None:
        yield f"{registers:.0f} registers per thread"
    fixed, asked = value(counters.STATIC_SHARED), value(counters.DYNAMIC_SHARED)
    if fixed is not None or asked is not None:
        yield f"shared memory per block {size(fixed or 0)} static, {size(asked or 0)} dynamic"
    if (waves := value(counters.WAVES)) is not None:
        yield f"{waves:.2f} waves"


def _shares(launch: Launch) -> Iterator[str]:
    value = launch.value
    yield f"bottleneck {findings.of_launch(launch)}"
    for name, words in ((counters.COMPUTE, "compute"), (counters.MEMORY, "memory path"), (counters.DRAM, "DRAM")):
        if (share := value(name)) is not None:
            yield f"{words} {percent(share)}"
    for name in CACHES:
        if (share := value(name)) is not None:
            yield f"{counters.label(name).removesuffix(' throughput')} {percent(share)}"
    theoretical, achieved = value(counters.THEORETICAL), value(counters.ACHIEVED)
    if theoretical is not None:
        by = findings.limiter(launch)
        reached = f", {percent(achieved)} achieved" if achieved is not None else ""
        yield f"occupancy {percent(theoretical)} possible{f' (limited by {by})' if by else ''}{reached}"


def _unusual(launch: Launch) -> Iterator[str]:
    for counter in counters.COUNTERS:
        found, whole_of_it = launch.value(counter.name), launch.value(counter.part_of) if counter.part_of else None
        if counter.part_of:
            found = found / whole_of_it if found is not None and whole_of_it else None
        if counter.tier is Tier.SECOND and found is not None and counter.is_unusual(found):
            is_percent = launch.values[counter.name][0] == "%" or bool(counter.part_of)
            shown = percent(found * (100 if counter.part_of else 1)) if is_percent else f"{found:,.3g}"
            yield f"{counter.label}: {shown} ({counter.meaning})"


def _stalls(launch: Launch) -> Iterator[str]:
    large = [(name, share) for name, share in whole.stall_shares(launch).items() if share >= STALL_SHARE]
    if large:
        words = (f"{percent(100 * share)} for {counters.STALLS.get(name, name)} ({name})" for name, share in large[:4])
        yield "warps wait: " + "; ".join(words)


def percent(value: float | None) -> str:
    """`83 %`, or a dash's words when it is not known."""
    return "not available" if value is None else f"{value:.0f} %" if abs(value) >= 10 else f"{value:.1f} %"


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    return f"{seconds * 1e3:.4g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.4g} us"


def size(number: float) -> str:
    """Bytes as people say them."""
    for size, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if number >= size:
            return f"{number / size:.3g} {name}"
    return f"{number:.0f} B"
