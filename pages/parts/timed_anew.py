"""Why latencies and speed-ups of kernels can tell different things: said only where they do. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from pages.parts import wording
from storage.results.relative import Relative

BECAUSE = "eager PyTorch is timed anew beside each kernel"


@dataclass(frozen=True, slots=True)
class Timed:
    """A kernel as it was timed, and how people call it."""

    name: str
    speedup: float
    latency_ms: float


def kernel(number: int, speedup: float | None, latency_ms: float | None) -> list[Timed]:
    """A kernel of a run by its number; nothing where it was not timed."""
    return [Timed(f"kernel {number}", speedup, latency_ms)] if speedup and latency_ms else []


def sentence(kernels: Iterable[Timed]) -> str:
    """The kernel with the highest speed-up that another one undercuts in latency; empty where the two orders agree, as
    far as latencies can be told apart on the page."""
    ordered = sorted(kernels, key=lambda timed: -timed.speedup)
    for number, first in enumerate(ordered):
        shown = wording.latency(first.latency_ms)
        lower = [
            timed for timed in ordered[number + 1 :]
            if timed.latency_ms < first.latency_ms and wording.latency(timed.latency_ms) != shown
        ]  # fmt: skip
        if lower:
            least = min(lower, key=lambda timed: timed.latency_ms)
            name = wording.capital(least.name)
            return f"{name} has a lower latency than {first.name}, but a lower speed-up too: {BECAUSE}."
    return ""


def again(other: str) -> str:
    """Of a best kernel that was timed once more before its run ended, in turns with another one or an alternative."""
    so = ", so that one was faster by speed-up and the other by latency" if other.startswith("kernel ") else ""
    return (
        f"The best kernel and {other} were timed once more before the run ended, one after the other: eager PyTorch "
        f"had taken another time beside each{so}."
    )


def is_by_latency(told: Relative, latency_ms: float | None, other_ms: float | None) -> bool:
    """Whether what is told of a kernel over another is the ratio of their latencies, as where eager was held up."""
    return bool(latency_ms and other_ms) and math.isclose(told.speedup * (latency_ms or 0.0), other_ms or 0.0)


def moved(this: Timed, other: Timed, told: Relative) -> str:
    """How long eager PyTorch took beside each of two kernels, where that moved by more than the noise of the ratio that
    is `told` of them, so that their speed-ups are further apart, or less far, than their latencies; with what these
    alone give, unless that is the ratio. Else empty."""
    beside, before = (timed.speedup * timed.latency_ms for timed in (this, other))
    if abs(math.log(beside / before)) <= math.log1p(told.noise):
        return ""
    times = f"{wording.latency(beside)} beside {this.name} and {wording.latency(before)} beside {other.name}"
    ratio = wording.speedup(other.latency_ms / this.latency_ms)
    is_told = is_by_latency(told, this.latency_ms, other.latency_ms)
    what = "Compared by latency" if is_told else f"By latency alone {this.name} is {ratio} as fast as {other.name}"
    return f"{what}: {BECAUSE}, and took {times}, by the pairs' median ratios."
