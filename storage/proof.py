"""What stands behind a result: one record per check made, whether it held, and what it showed. Knows no check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Group(StrEnum):
    """Which part of the evaluator made a check."""

    SCREENING = "screening"
    ISOLATION = "isolation"
    CORRECTNESS = "correctness"
    TIMING = "timing"


class Standing(StrEnum):
    """How a check ended.

    HELD: as it should be. FLAGGED: accepted, but a person should look. BROKEN: the reason of a refusal. ABSENT: could
    not be made here, or the task gives no occasion; the detail says why.
    """

    HELD = "held"
    FLAGGED = "flagged"
    BROKEN = "broken"
    ABSENT = "absent"

    @property
    def severity(self) -> int:
        """Larger is worse. A wall that stood in one stage and could not be made in another did not stand throughout."""
        return (Standing.HELD, Standing.ABSENT, Standing.FLAGGED, Standing.BROKEN).index(self)


@dataclass(frozen=True, slots=True)
class Proof:
    """One check. `check` is its short name, the same in every result; `detail` holds the figures and units.

    Where a check compares two numbers, `value` is what was measured and `limit` what it must not exceed, in one unit.
    """

    group: Group
    check: str
    standing: Standing
    detail: str = ""
    value: float | None = None
    limit: float | None = None
