"""Whether and when a call that came to nothing is sent again. Knows failures, not what was asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.errors import CallError
from storage.run.models import CallFailure

# A call that may have been charged is sent twice at most; one that certainly was not may be sent more often.
TRIES: Mapping[CallFailure, int] = {
    CallFailure.RATE_LIMITED: 8,
    CallFailure.SERVER_ERROR: 6,
    CallFailure.UNREACHABLE: 6,
    CallFailure.REJECTED: 4,
    CallFailure.TIMED_OUT: 2,
    CallFailure.DROPPED: 2,
    CallFailure.EMPTY: 2,
    CallFailure.MALFORMED: 2,
}
FIRST_S = 1.0
LONGEST_S = 60.0
PATIENCE_S = 900.0


def pause_before_next(failed: Sequence[CallError], chance: float) -> float | None:
    """Seconds until the next try after these failures, or None when there is none. `chance` is random in [0, 1).

    What the endpoint asks for is only ever added to; the pause also doubles, with jitter of half of it, so that an
    endpoint that asks for none is not asked again and again at once.
    """
    last = failed[-1]
    alike = sum(error.failure is last.failure for error in failed)
    if last.is_lasting or alike >= TRIES.get(last.failure, 1):
        return None
    if sum(error.is_charged for error in failed) >= 2:
        return None
    asked = last.retry_after_s or 0.0
    if asked > PATIENCE_S:
        return None
    longest: float = min(LONGEST_S, FIRST_S * 2 ** (len(failed) - 1))
    return max(asked + chance * min(1.0, 0.1 * asked), longest * (0.5 + 0.5 * chance))
