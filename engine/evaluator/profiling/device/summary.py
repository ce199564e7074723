"""What a model is shown of a device profile: the first tier always, of the second what is out of its normal range."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.evaluator.profiling.device import bottleneck, launch_counters
from engine.evaluator.profiling.device.ceilings import DeviceCeilings
from engine.evaluator.profiling.device.launch_counters import Launch, Whole
from engine.evaluator.profiling.device.without_counters import Watched
from storage.results import counters
from storage.results.counters import Tier
from storage.results.hardware_limit import HardwareLimit
from storage.results.kernel_names import short
from storage.results.profile_results import Advice

SHOWN_LAUNCHES, SHOWN_KERNELS = 4, 10
SHOWN_ADVICE = 5
ADVICE_LENGTH = 320
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
STALL_SHARE = 0.1
MINOR_SHARE = 0.05
IDLE_SHARE = 0.1  # of a call in which no kernel runs
CACHES = (
    "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed",
)


@dataclass(frozen=True, slots=True)
class Seen:
    """A device profile before it is put into words."""

    launches: Sequence[Launch]
    whole: Whole
    advice: Sequence[Advice]
    ceilings: DeviceCeilings
    limit: HardwareLimit
    how: str
    missing: Sequence[str] = ()
    is_cut: bool = False


def text(seen: Seen) -> str:
    """What the model is shown of a profile: the call, its launches, the profiler's advice."""
    return "\n".join(
        line
        for part in (_call(seen), _launches(seen.launches, seen.whole.seconds), _advice(seen), _end(seen))
        for line in part
    )


def without_counters(
    trace: Watched, reason: str, bound: str, shares: tuple[float, float], seconds: float, ceilings: DeviceCeilings
) -> Iterator[str]:
    """The summary of a profile that had no counters."""
    yield f"No hardware counters on {ceilings.device}: {reason}."
    yield f"Device time {duration(seconds)}. Bottleneck: {bound}."
    yield (
        f"The task's least bytes make {percent(shares[0])} of the memory limit in that time, its least operations "
        f"{percent(shares[1])} of the arithmetic limit; what the kernel really moved is not known."
    )
    total = launch_counters.seconds_of(trace.launches)
    if trace.launches and total < (1 - IDLE_SHARE) * seconds:
        yield f"No kernel runs in {percent(100 - 100 * total / seconds)} of that time: the device waits for launches."
    yield from _launches(trace.launches, total)
    for resources in trace.compiled[:SHOWN_LAUNCHES]:
        spilled = f", {resources.stack_bytes} bytes of stack per thread" if resources.stack_bytes else ", no stack"
        registers, shared = resources.registers, size(resources.shared_bytes)
        yield f"Compiled: {resources.kernel[:80]}: {registers} registers{spilled}, {shared} shared"


def _call(seen: Seen) -> Iterator[str]:
    all_of_it, limit, ceilings = seen.whole, seen.limit, seen.ceilings
    memory, compute = all_of_it.average(counters.MEMORY), all_of_it.average(counters.COMPUTE)
    room = bottleneck.headroom(memory, compute)
    number = _count(len(seen.launches), "launch")
    yield f"{seen.how} on {ceilings.device}: {number}, {duration(all_of_it.seconds)} on the device."
    if seen.is_cut:
        yield (
            f"Only the first {len(seen.launches)} launches of the call were profiled: these figures are theirs alone, "
            "and not to be compared with another profile's."
        )
    bound = bottleneck.of_call(seen.launches, all_of_it)
    yield (
        f"Bottleneck: {bound}. Memory path {percent(memory)} of peak, compute {percent(compute)}"
        + (f", headroom {percent(room)}." if room is not None else ".")
    )
    if all_of_it.bandwidth is not None:
        share = 100 * all_of_it.bandwidth / (ceilings.bandwidth_gb_s * 1e9)
        times = None if seen.is_cut else bottleneck.traffic(all_of_it, limit.min_bytes)
        yield (
            f"Device memory: {size(all_of_it.dram_bytes or 0)} moved at {all_of_it.bandwidth / 1e12:.3g} TB/s, "
            f"{percent(share)} of the copy bandwidth"
            + (f"; {times:.2f} times the least this task needs ({size(limit.min_bytes)})." if times else ".")
        )
    yield from _arithmetic(all_of_it, ceilings)


def _arithmetic(all_of_it: Whole, ceilings: DeviceCeilings) -> Iterator[str]:
    if all_of_it.flop and all_of_it.rate and all_of_it.intensity is not None:
        kinds = ", ".join(f"{name} {value:.3g}" for name, value in all_of_it.flop.items())
        kind = all_of_it.main_kind
        peak = ceilings.by_name().get(kind)
        share = f", {percent(100 * all_of_it.rate / peak)} of the {kind} peak" if peak else ""
        yield (
            f"Roofline: {all_of_it.intensity:.3g} operations per byte, {all_of_it.rate / 1e12:.3g} TFLOP/s{share} "
            f"(operations counted: {kinds})."
        )


def _launches(launches: Sequence[Launch], total_s: float) -> Iterator[str]:
    """Few launches in their order; of many the kernels that take longest in all, each with its longest launch."""
    if len(launches) <= SHOWN_LAUNCHES:
        for launch in launches:
            yield from launch_lines(launch, total_s)
        return
    by_kernel: dict[str, list[Launch]] = {}
    for launch in launches:
        by_kernel.setdefault(short(launch.kernel), []).append(launch)
    kernels = sorted(by_kernel.items(), key=lambda kernel: -launch_counters.seconds_of(kernel[1]))
    yield f"By kernel, those first that take longest in all; below each its longest launch, of {len(launches)}:"
    for name, own in kernels[:SHOWN_LAUNCHES]:
        own_s = launch_counters.seconds_of(own)
        if len(own) > 1:
            yield f"{name}: {len(own)} launches, {duration(own_s)} in all, {_share(own_s, total_s)} of the time"
        yield from launch_lines(max(own, key=lambda launch: launch.value(counters.TIME) or 0.0), total_s, own_s)
    for name, own in kernels[SHOWN_LAUNCHES:SHOWN_KERNELS]:
        yield f"{name}: {_count(len(own), 'launch')}, {_share(launch_counters.seconds_of(own), total_s)} of the time"
    if rest := [launch for _, own in kernels[SHOWN_KERNELS:] for launch in own]:
        share = _share(launch_counters.seconds_of(rest), total_s)
        yield f"{_count(len(rest), 'more launch')} of {len(kernels) - SHOWN_KERNELS} kernels, {share} of the time."


def _share(part_s: float, total_s: float) -> str:
    return percent(100 * part_s / total_s if total_s else None)


def _advice(seen: Seen) -> Iterator[str]:
    worth = [piece for piece in seen.advice if piece.gain_percent]
    if worth:
        yield "The profiler's own advice, with the share of that launch it estimates could be saved:"
    for piece in worth[:SHOWN_ADVICE]:
        words = essence(piece.text)
        yield f"  launch {piece.launch}: {piece.gain_percent:.0f} %: {words}"


def essence(text: str) -> str:
    """The sentences of a piece of advice that carry figures, without links; else its first."""
    sentences = [sentence for sentence in _SENTENCE.split(text) if "http" not in sentence]
    kept = " ".join([sentence for sentence in sentences if re.search(r"\d", sentence)] or sentences[:1])
    return kept if len(kept) <= ADVICE_LENGTH else kept[: ADVICE_LENGTH - 1] + "…"


def _end(seen: Seen) -> Iterator[str]:
    if seen.missing:
        names = sorted({counters.label(name) for name in seen.missing})
        yield "Not available here: " + ", ".join(names[:12]) + ("…" if len(names) > 12 else "") + "."


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}es"


def launch_lines(launch: Launch, total_s: float, stands_for_s: float = 0.0) -> Iterator[str]:
    """A heading, and for a launch that matters to a call of `total_s` seconds the rest; it may stand for all launches
    of its kernel."""
    value = launch.value
    took = value(counters.TIME)
    share = f" ({percent(100 * took / total_s)} of the time)" if took and total_s else ""
    yield f"Launch {launch.number}: {short(launch.kernel)}{', ' + duration(took) if took else ''}{share}"
    if took and max(took, stands_for_s) < MINOR_SHARE * total_s:
        return
    yield "  " + "; ".join(_shape(launch))
    yield "  " + "; ".join(_shares(launch))
    for line in [*_unusual(launch), *_stalls(launch), *(f"signal: {signal}" for signal in bottleneck.signals(launch))]:
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
    yield f"bottleneck {bottleneck.of_launch(launch)}"
    for name, words in ((counters.COMPUTE, "compute"), (counters.MEMORY, "memory path"), (counters.DRAM, "DRAM")):
        if (share := value(name)) is not None:
            yield f"{words} {percent(share)}"
    for name in CACHES:
        if (share := value(name)) is not None:
            yield f"{counters.label(name).removesuffix(' throughput')} {percent(share)}"
    theoretical, achieved = value(counters.THEORETICAL), value(counters.ACHIEVED)
    if theoretical is not None:
        by = bottleneck.limiter(launch)
        reached = f", {percent(achieved)} achieved" if achieved is not None else ""
        yield f"occupancy {percent(theoretical)} possible{f' (limited by {by})' if by else ''}{reached}"


def _unusual(launch: Launch) -> Iterator[str]:
    for counter in counters.COUNTERS:
        value, whole_of_it = launch.value(counter.name), launch.value(counter.part_of) if counter.part_of else None
        if counter.part_of:
            value = value / whole_of_it if value is not None and whole_of_it else None
        if counter.tier is Tier.SECOND and value is not None and counter.is_unusual(value):
            is_percent = launch.values[counter.name][0] == "%" or bool(counter.part_of)
            shown = percent(value * (100 if counter.part_of else 1)) if is_percent else f"{value:,.3g}"
            yield f"{counter.label}: {shown} ({counter.meaning})"


def _stalls(launch: Launch) -> Iterator[str]:
    large = [(name, share) for name, share in launch_counters.stall_shares([launch]).items() if share >= STALL_SHARE]
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
