"""What stands behind a result: one record per check made, whether it held, and what it showed. Knows no check."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum


class Group(StrEnum):
    """Which part of the evaluator made a check."""

    SCREENING = "screening"
    ISOLATION = "isolation"
    CORRECTNESS = "correctness"
    TIMING = "timing"


class CheckOutcome(StrEnum):
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
        return (CheckOutcome.HELD, CheckOutcome.ABSENT, CheckOutcome.FLAGGED, CheckOutcome.BROKEN).index(self)


@dataclass(frozen=True, slots=True)
class CheckRecord:
    """One check. `check` is its short name, the same in every result; `detail` holds the figures and units.

    Journals and tables call the outcome `standing` and a result's checks `proofs`, so the fields do too.
    Where a check compares two numbers, `value` is what was measured and `limit` what it must not exceed, in one unit.
    """

    group: Group
    check: str
    standing: CheckOutcome
    detail: str = ""
    value: float | None = None
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class StagedCheck(CheckRecord):
    """One check of one candidate and the stages it was made in: write, compile, check, time."""

    stages: tuple[str, ...] = ()


def worst_of_stages(found: Iterable[StagedCheck]) -> list[StagedCheck]:
    """One record per check, by group, the worst first. A check made in several stages shows where it stood worst.

    Several of one check in one stage are several findings and all stay.
    """
    by_check: dict[tuple[Group, str], list[StagedCheck]] = {}
    for check_record in found:
        by_check.setdefault((check_record.group, check_record.check), []).append(check_record)
    groups = list(Group)
    kept = (check_record for same in by_check.values() for check_record in _worst_stage(same))
    return sorted(kept, key=lambda check_record: (groups.index(check_record.group), -check_record.standing.severity))


def _worst_stage(same: Sequence[StagedCheck]) -> list[StagedCheck]:
    stages = tuple(dict.fromkeys(stage for check_record in same for stage in check_record.stages))
    worst = max(reversed(same), key=lambda check_record: check_record.standing.severity)
    return [replace(check_record, stages=stages) for check_record in same if check_record.stages == worst.stages]


WORDS = {
    CheckOutcome.HELD: "passed",
    CheckOutcome.FLAGGED: "flagged",
    CheckOutcome.BROKEN: "failed",
    CheckOutcome.ABSENT: "not done",
}


def counted(check_records: Sequence[CheckRecord]) -> str:
    """ "34 checks passed, 1 flagged, 2 not done"; kinds that there are none of are left out."""
    number = {kind: sum(check_record.standing is kind for check_record in check_records) for kind in WORDS}
    counts = [(number[kind], word) for kind, word in WORDS.items() if number[kind]]
    if not counts:
        return "no checks"
    (first, word), *others = counts
    return ", ".join([f"{first} {'check' if first == 1 else 'checks'} {word}", *(f"{n} {w}" for n, w in others)])
