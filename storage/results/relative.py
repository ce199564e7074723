"""How fast one thing is over another when each was measured against a third. Pure; knows neither kernels nor runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
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
class Relative:
    """A ratio of two speed-ups over the same baseline, which cancels out.

    `noise` is relative: those of both speed-ups combined in quadrature, since they were measured independently. The
    interval, faster and slower say the same: it is faster where all of low..high lies above 1, slower where all of it
    lies below.
    """

    speedup: float
    noise: float

    @property
    def low(self) -> float:
        """Lower end of the 95 % interval; always above zero, as a speed-up is."""
        return self.speedup / (1 + self.noise)

    @property
    def high(self) -> float:
        """Upper end of the same interval; of noise that leaves nothing to tell, no more than twenty times as much."""
        return self.speedup / max(1 - self.noise, 0.05)

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


def over(speedup: float, noise: float, other: float, other_noise: float) -> Relative:
    """One speed-up over another, each with its relative noise."""
    return Relative(speedup / other, math.hypot(noise, other_noise))


class _Kernel(Protocol):
    """A kernel as it was timed beside eager."""

    @property
    def speedup(self) -> float | None: ...
    @property
    def noise(self) -> float | None: ...
    @property
    def latency_ms(self) -> float | None: ...


def gain(new: _Kernel, old: _Kernel, *, is_on_gpu: bool) -> Relative | None:
    """How much faster one kernel is told to be than another, with the noise of two sessions: on a GPU the lower of both
    ratios where eager took much longer beside it (`held_up`). None unless both were timed."""
    if not new.speedup or not old.speedup:
        return None
    beside, before = (baseline_ms(kernel.speedup, kernel.latency_ms) for kernel in (new, old))
    factor = held_up(beside, before) if is_on_gpu else 1.0
    return between_sessions(new.speedup / factor, new.noise or 0.0, old.speedup, old.noise or 0.0)


def is_ahead(best: _Kernel, other: _Kernel, *, is_newer: bool, is_on_gpu: bool) -> bool:
    """Whether the best kernel of a run is faster than another one beyond the noise; `is_newer`: it was made after that
    one. Of two kernels the newer one over the older is told (`gain`), here too, since near the noise the reverse ratio
    can say another thing."""
    ratio = gain(best, other, is_on_gpu=is_on_gpu) if is_newer else gain(other, best, is_on_gpu=is_on_gpu)
    return ratio is not None and (ratio.is_faster if is_newer else ratio.is_slower)


def between_sessions(speedup: float, noise: float, other: float, other_noise: float) -> Relative:
    """One speed-up over another, of kernels timed in sessions of their own: what a kernel is kept or told slower by."""
    return Relative(speedup / other, math.hypot(noise, other_noise, SESSION_NOISE))
