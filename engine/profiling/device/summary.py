"""What a model is shown of a device profile: the first tier always, of the second what is out of its normal range."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.profiling.device import findings, launch_words, whole
from engine.profiling.device.ceilings import DeviceCeilings
from engine.profiling.device.launch_words import duration, percent, size
from engine.profiling.device.pages import Launch
from engine.profiling.device.watching import Watched
from engine.profiling.device.whole import Whole
from storage import counters
from storage.records import Advice, HardwareLimit

SHOWN_LAUNCHES = 4
SHOWN_ADVICE = 5
ADVICE_LENGTH = 320
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


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
    """The whole summary."""
    return "\n".join(line for part in (_call(seen), _launches(seen), _advice(seen), _end(seen)) for line in part)


def without_counters(
    found: Watched, reason: str, bound: str, shares: tuple[float, float], seconds: float, here: DeviceCeilings
) -> Iterator[str]:
    """The summary of a profile that had no counters."""
    yield f"No hardware counters on {here.device}: {reason}."
    yield f"Device time {duration(seconds)}. Bottleneck: {bound}."
    yield (
        f"The task's least bytes make {percent(shares[0])} of the memory limit in that time, its least operations "
        f"{percent(shares[1])} of the arithmetic limit; what the kernel really moved is not known."
    )
    total = whole.seconds(found.launches)
    for launch in found.launches[:SHOWN_LAUNCHES]:
        yield from launch_words.lines(launch, total)
    for one in found.compiled[:SHOWN_LAUNCHES]:
        spilled = f", {one.stack_bytes} bytes of stack per thread" if one.stack_bytes else ", no stack"
        yield f"Compiled: {one.kernel[:80]}: {one.registers} registers{spilled}, {size(one.shared_bytes)} shared"


def _call(seen: Seen) -> Iterator[str]:
    all_of_it, limit, here = seen.whole, seen.limit, seen.ceilings
    memory, compute = all_of_it.average(counters.MEMORY), all_of_it.average(counters.COMPUTE)
    room = findings.headroom(memory, compute)
    number = _count(len(seen.launches), "launch")
    yield f"{seen.how} on {here.device}: {number}, {duration(all_of_it.seconds)} on the device."
    bound = findings.of_call(seen.launches, all_of_it)
    yield (
        f"Bottleneck: {bound}. Memory path {percent(memory)} of peak, compute {percent(compute)}"
        + (f", headroom {percent(room)}." if room is not None else ".")
    )
    if all_of_it.bandwidth is not None:
        share = 100 * all_of_it.bandwidth / (here.bandwidth_gb_s * 1e9)
        times = findings.traffic(all_of_it, limit.min_bytes)
        yield (
            f"Device memory: {size(all_of_it.dram_bytes or 0)} moved at {all_of_it.bandwidth / 1e12:.3g} TB/s, "
            f"{percent(share)} of the copy bandwidth"
            + (f"; {times:.2f} times the least this task needs ({size(limit.min_bytes)})." if times else ".")
        )
    yield from _arithmetic(all_of_it, here)


def _arithmetic(all_of_it: Whole, here: DeviceCeilings) -> Iterator[str]:
    if all_of_it.flop and all_of_it.rate and all_of_it.intensity is not None:
        kinds = ", ".join(f"{name} {value:.3g}" for name, value in all_of_it.flop.items())
        kind = all_of_it.main_kind
        peak = here.by_name().get(kind)
        share = f", {percent(100 * all_of_it.rate / peak)} of the {kind} peak" if peak else ""
        yield (
            f"Roofline: {all_of_it.intensity:.3g} operations per byte, {all_of_it.rate / 1e12:.3g} TFLOP/s{share} "
            f"(operations counted: {kinds})."
        )


def _launches(seen: Seen) -> Iterator[str]:
    longest = sorted(seen.launches, key=lambda one: -(one.value(counters.TIME) or 0.0))
    for launch in sorted(longest[:SHOWN_LAUNCHES], key=lambda one: one.number):
        yield from launch_words.lines(launch, seen.whole.seconds)
    rest = longest[SHOWN_LAUNCHES:]
    if rest and seen.whole.seconds:
        share = 100 * whole.seconds(rest) / seen.whole.seconds
        yield f"{_count(len(rest), 'more launch')}, {percent(share)} of the time."
    if seen.is_cut:
        yield f"Only the first {len(seen.launches)} launches were profiled."


def _advice(seen: Seen) -> Iterator[str]:
    worth = [one for one in seen.advice if one.gain_percent]
    if worth:
        yield "The profiler's own advice, with the share of that launch it estimates could be saved:"
    for one in worth[:SHOWN_ADVICE]:
        words = essence(one.text)
        yield f"  launch {one.launch}: {one.gain_percent:.0f} %: {words}"


def essence(text: str) -> str:
    """The sentences of a piece of advice that carry figures, without links; else its first."""
    sentences = [one for one in _SENTENCE.split(text) if "http" not in one]
    told = " ".join([one for one in sentences if re.search(r"\d", one)] or sentences[:1])
    return told if len(told) <= ADVICE_LENGTH else told[: ADVICE_LENGTH - 1] + "…"


def _end(seen: Seen) -> Iterator[str]:
    if seen.missing:
        names = sorted({counters.label(name) for name in seen.missing})
        yield "Not available here: " + ", ".join(names[:12]) + ("…" if len(names) > 12 else "") + "."


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}es"
