"""How near a kernel is to what the machine could do at best for its task, in words with what they assume. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pages.parts import wording
from storage.results.evaluation_results import BUSY_PERCENT
from storage.results.hardware_limit import AT_THE_LIMIT, CLEARLY_FEWER, HardwareLimit

UNKNOWN = "not known"
CACHE = 1.1  # a rate this far above device memory's bandwidth is helped by a cache


def share(limit: HardwareLimit | None, latency_ms: float | None) -> float | None:
    """The limit's time over the kernel's, 1 on the limit; None where either is not known."""
    return limit.reached_at(latency_ms) if limit and latency_ms and limit.limit_ms > 0 else None


def percent(limit: HardwareLimit | None, latency_ms: float | None) -> str:
    """`83 %`, or a dash; a word where a kernel was faster than the limit that was measured."""
    if limit and latency_ms and not limit.is_known:
        return UNKNOWN
    attained = share(limit, latency_ms)
    return wording.NONE if attained is None else f"{wording.significant(100 * attained, 2)} %"


def sentence(limit: HardwareLimit, latency_ms: float | None, memory_rate: float | None = None) -> str:
    """The limit, what it assumes, and how much of it was reached. `memory_rate` in bytes per second is that of device
    memory, where the profile knows it."""
    if limit.may_skip or limit.is_undercut:
        masks = "It masks part of their results, so a kernel may skip some"
        return (
            f"Limit not known for this task: {wording.latency(limit.counted_ms)} is the time for all "
            f"{wording.quantity(float(limit.min_flop), 'FLOP')} of the reference. "
            f"{wording.capital(_executes(limit)) if limit.is_undercut else masks}."
        )
    if limit.leaves_out_products:
        took = f" This kernel takes {wording.latency(latency_ms)}." if latency_ms else ""
        return (
            "Limit not known for this task: it multiplies matrices, and its operations are not counted. Memory alone "
            f"takes {wording.latency(limit.limit_ms)}, for moving {wording.quantity(float(limit.min_bytes), 'B')} at "
            f"{_bandwidth(limit, memory_rate)}.{took}"
        )
    if not limit.is_known:
        of = f" of {wording.latency(limit.measured_ms)}" if limit.measured_ms else ""
        return (
            f"Limit not known for this task: a kernel took {wording.latency(limit.limit_ms)}, less than the measured "
            f"limit{of}. The task needs less work than is counted for it, or the device is faster than was measured. A "
            "share of the limit would compare that kernel with itself."
        )
    moving = f"moving its {wording.quantity(float(limit.min_bytes), 'B')} at {_bandwidth(limit, memory_rate)}"
    if limit.min_flop:
        peak = wording.quantity(limit.peak_gflop_s * 1e9, "FLOP/s")
        left = " (what the reference's masks leave)" if limit.leaves_masked_out else ""
        work = f"its {wording.quantity(float(limit.min_flop), 'FLOP')}{left} at {peak}"
        longer, shorter = (work, moving) if limit.compute_ms > limit.memory_ms else (moving, work)
        moving = f"{longer}, which takes longer than {shorter}"
    else:
        moving += "; its operations are not counted"
    text = f"Limit (theoretical minimum latency) {wording.latency(limit.limit_ms)}: {moving}."
    if share(limit, latency_ms) is None:
        return text
    return f"{text} This kernel takes {wording.latency(latency_ms)}: {percent(limit, latency_ms)} of the limit."


def why_unknown(limit: HardwareLimit, latency_ms: float | None = None) -> str:
    """Why a limit is not known, in a few words, and what is known of a kernel of this latency."""
    if limit.leaves_out_products:
        alone = f"memory: {wording.significant(100 * limit.limit_ms / latency_ms, 2)} %; " if latency_ms else ""
        return f"{alone}operations uncounted"
    if limit.is_undercut:
        return _executes(limit).replace(" floating-point", "")
    return "a kernel may skip operations" if limit.may_skip else "for this task"


def _executes(limit: HardwareLimit) -> str:
    share = wording.significant(limit.executed_share or 0.0, 2)
    return f"a kernel of this run executes as little as {share} of the task's floating-point operations"


def avoidable(limit: HardwareLimit | None, executed_share: float | None) -> str:
    """That a kernel is as fast as it is by doing without part of the work, as far as its own profile tells; else
    empty."""
    if limit is None or not limit.is_undercut or executed_share is None or executed_share >= CLEARLY_FEWER:
        return ""
    much = "Most" if executed_share < 0.5 else "Part"
    share = wording.significant(executed_share, 2)
    return f"{much} of the task's work is avoidable: this kernel executes {share} of its floating-point operations."


def how_measured(limit: HardwareLimit, at: float | None) -> str:
    """Where a limit has its rates from, and when that was (seconds since the epoch)."""
    # What is told then is the time for all that is counted.
    is_counted = limit.may_skip or limit.is_undercut or limit.leaves_out_products
    if not limit.is_known and not is_counted:
        return f"That kernel was timed {wording.moment(at)}." if at else ""
    by = f", {wording.moment(at)}" if at else ""
    if limit.is_raised:
        return f"A kernel was faster than what had been measured, and its latency is the limit from then on{by}."
    quiet = "" if limit.others_share is None or is_busy(limit) else " The machine was quiet."
    return f"By the highest rates measured on its machine until then{by}.{quiet}"


def is_busy(limit: HardwareLimit) -> bool:
    """Whether other programs are known to have used the processors whenever the rates were measured."""
    return limit.others_share is not None and 100 * limit.others_share > BUSY_PERCENT


def doubt(limit: HardwareLimit, others_ms: Sequence[float]) -> str:
    """What makes a limit uncertain: a busy machine, or other limits in ms of the same work on the same model of device;
    empty where nothing is known."""
    said = ""
    if is_busy(limit):
        said = (
            "The machine was busy when the hardware limit was measured: other programs used "
            f"{wording.percent(limit.others_share)} of its processors just before. The true limit may be shorter. "
        )
    limits = [limit.limit_ms, *others_ms] if limit.is_known else []
    if are_apart(limits):
        said += (
            f"Runs of this task on {limit.model} have hardware limits from "
            f"{wording.latency(min(limits))} to {wording.latency(max(limits))}, this one "
            f"{wording.latency(limit.limit_ms)}. {LONGER}"
        )
    return said.strip()


LONGER = "Each run measures its own; other programs can only make it longer, so the shortest is nearest to the truth."


def are_apart(limits_ms: Sequence[float]) -> bool:
    """Whether limits of the same work differ so far that a reader would ask which of them is true."""
    return len(limits_ms) > 1 and max(limits_ms) > AT_THE_LIMIT * min(limits_ms)


def _bandwidth(limit: HardwareLimit, memory_rate: float | None) -> str:
    bandwidth = wording.quantity(limit.bandwidth_gb_s * 1e9, "B/s")
    far = memory_rate or (limit.facts.memory_gb_s * 1e9 if limit.facts else 0.0)
    if far and limit.bandwidth_gb_s * 1e9 > CACHE * far and not limit.is_raised:
        memory = f"device memory alone gives {wording.quantity(far, 'B/s')}"
        return f"{bandwidth} (measured with copies of that size: part of the data stays in the caches; {memory})"
    return f"{bandwidth} (device memory bandwidth)" if memory_rate else bandwidth
