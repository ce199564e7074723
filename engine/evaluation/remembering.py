"""Whether a candidate remembers results: the same inputs once more, untouched, must cost what they cost before. Pure.

A cache may know its inputs by address, version or content. What it cannot do is be slow when it is asked twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.evaluation.clock import Call, Clock

PROBES = 5
SLOW_PROBES = 2
SLOW_MS = 200.0
# An honest second call finds its inputs in nearer caches, and so does the reference's.
REMEMBERED = 0.4
LEAST_MS = 0.1

Twice = tuple[Call, Call]


@dataclass(frozen=True, slots=True)
class Recall:
    """What second calls on the same inputs took of calls on new ones, of both sides; the quickest of each."""

    first_ms: float
    share: float
    reference_share: float
    resolution_ms: float

    @classmethod
    def of(cls, clock: Clock, candidate: Sequence[Twice], reference: Sequence[Twice], timed: Sequence[Call]) -> Recall:
        """From pairs of calls, the second of each on the same inputs, and the candidate's calls of the session.

        Those were on new inputs as well, and they are many: other load can lengthen a few first calls by a multiple of
        a short kernel's time, and a second one that meets none would look remembered.
        """
        # With a clock of their own: between the two nothing is loaded and nothing written, so the question costs less.
        seconds = Clock.of([second for _, second in reference])
        first_ms = clock.milliseconds([*timed, *(first for first, _ in candidate)])
        share = seconds.milliseconds([second for _, second in candidate]) / first_ms
        first_of_reference = clock.milliseconds([first for first, _ in reference])
        reference_share = seconds.milliseconds([second for _, second in reference]) / first_of_reference
        return cls(first_ms, share, reference_share, max(clock.spread_ns, seconds.spread_ns) / 1e6)

    @property
    def is_telling(self) -> bool:
        """False where a call is too short for the clock to see the difference."""
        return self.first_ms > LEAST_MS and self._limit > 0

    @property
    def remembers(self) -> bool:
        """True when the second call is far quicker than work and the clock's resolution explain."""
        return self.is_telling and self.share < self._limit

    @property
    def _limit(self) -> float:
        return REMEMBERED * min(1.0, self.reference_share) - self.resolution_ms / self.first_ms

    def __str__(self) -> str:
        return (
            f"a second call on the same inputs takes {self.share:.0%} of the first, the reference's "
            f"{self.reference_share:.0%}"
        )
