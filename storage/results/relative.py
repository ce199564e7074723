"""How fast one thing is over another when each was measured against a third. Pure; knows neither kernels nor runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

SESSION_NOISE = 0.05
"""How far two sessions differ beyond what the pairs inside each show: processes, memory, threads lie elsewhere."""


MOVED = 1.3
"""How many times as long eager may take on a GPU beside a kernel as beside an alternative, or the other way round,
before their speed-ups do not compare: where it waits for the processor, a slow or busy one holds up eager alone. On a
processor everything slows together, which the pairs cancel."""

KNOWN = 0.5
"""Relative noise up to which a speed-up is told: beyond it the 95 % interval is wider than the figure itself."""


def is_known(noise: float) -> bool:
    """Whether a speed-up with this relative noise says anything."""
    return noise <= KNOWN


@dataclass(frozen=True, slots=True)
class Measured:
    """A speed-up over eager with its 95 % interval low..high and its relative noise."""

    speedup: float
    low: float
    high: float
    noise: float


def measured(speedup: float | None, low: float | None, high: float | None, noise: float | None) -> Measured | None:
    """The same of a row that may hold none."""
    if speedup is None or low is None or high is None or noise is None:
        return None
    return Measured(speedup, low, high, noise)


@dataclass(frozen=True, slots=True)
class Relative:
    """A ratio of two speed-ups over the same baseline, which cancels out.

    `noise` is relative: those of both speed-ups combined in quadrature, since they were measured independently. The
    interval, faster and slower say the same: it is faster where all of low..high lies above 1, slower where all of it
    lies below. Of noise that leaves no figure to tell, `ends` are those of the interval: what is known of both lies
    then mostly on one side of their speed-ups, which one noise for both sides would not show.
    """

    speedup: float
    noise: float
    ends: tuple[float, float] | None = None

    @property
    def low(self) -> float:
        """Lower end of the 95 % interval; always above zero, as a speed-up is."""
        return self.ends[0] if self.ends else self.speedup / (1 + self.noise)

    @property
    def high(self) -> float:
        """Upper end of the same interval; of noise that leaves nothing to tell, no more than twenty times as much."""
        return self.ends[1] if self.ends else self.speedup / max(1 - self.noise, 0.05)

    @property
    def is_faster(self) -> bool:
        """True when it is faster by more than the noise."""
        return self.low > 1

    @property
    def is_slower(self) -> bool:
        """True when it is slower by more than the noise."""
        return self.high < 1


def baseline_ms(speedup: float | None, latency_ms: float | None) -> float | None:
    """The baseline's latency beside a kernel, as the pairs of its session tell: a speed-up is the median over the
    pairs, and the medians of the two sides differ by another factor. None where either is not known."""
    return speedup * latency_ms if speedup and latency_ms else None


def held_up(eager_ms: float | None, own_ms: float | None) -> float:
    """How many times as long eager took beside a kernel (`eager_ms`) as beside an alternative (`own_ms`), where that is
    too much for their speed-ups to compare; else 1. By so much the alternative's speed-up grows beside that kernel,
    which leaves their latencies: the lower of both ratios, since the kernel's latency may have been held up too."""
    if not eager_ms or not own_ms or eager_ms < MOVED * own_ms:
        return 1.0
    return eager_ms / own_ms


def over(kernel: Measured, other: Measured) -> Relative:
    """One speed-up over another."""
    noise = math.hypot(kernel.noise, other.noise)
    ends = None if is_known(noise) else (kernel.low / other.high, kernel.high / other.low)
    return Relative(kernel.speedup / other.speedup, noise, ends)


class _Kernel(Protocol):
    """A kernel as it was timed beside eager."""

    @property
    def speedup(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...
    @property
    def noise(self) -> float | None: ...
    @property
    def latency_ms(self) -> float | None: ...


def gain(new: _Kernel, old: _Kernel, *, is_on_gpu: bool) -> Relative | None:
    """How much faster one kernel is told to be than another, with the noise of two sessions: on a GPU the lower of both
    ratios where eager took much longer beside it (`held_up`), and of figures too vague to tell by both ends of their
    intervals. None unless both were timed."""
    if not new.speedup or not old.speedup:
        return None
    beside, before = (baseline_ms(kernel.speedup, kernel.latency_ms) for kernel in (new, old))
    factor = held_up(beside, before) if is_on_gpu else 1.0
    ratio = between_sessions(new.speedup / factor, new.noise or 0.0, old.speedup, old.noise or 0.0)
    if is_known(ratio.noise) or not (new.low and new.high and old.low and old.high):
        return ratio
    ends = new.low / factor / old.high / (1 + SESSION_NOISE), new.high / factor / old.low * (1 + SESSION_NOISE)
    return replace(ratio, ends=ends)


def is_ahead(best: _Kernel, other: _Kernel, *, is_newer: bool, is_on_gpu: bool) -> bool:
    """Whether the best kernel of a run is faster than another one beyond the noise; `is_newer`: it was made after that
    one. Of two kernels the newer one over the older is told (`gain`), here too, since near the noise the reverse ratio
    can say another thing."""
    ratio = gain(best, other, is_on_gpu=is_on_gpu) if is_newer else gain(other, best, is_on_gpu=is_on_gpu)
    return ratio is not None and (ratio.is_faster if is_newer else ratio.is_slower)


def between_sessions(speedup: float, noise: float, other: float, other_noise: float) -> Relative:
    """One speed-up over another, of kernels timed in sessions of their own: what a kernel is kept or told slower by."""
    return Relative(speedup / other, math.hypot(noise, other_noise, SESSION_NOISE))
