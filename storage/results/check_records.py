"""What stands behind a result: one record per check made, whether it held, and what it showed. Knows no check."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from storage.results import timed_twice
from storage.results.timed_twice import BEYOND, BUT, CONFIRMED, DISJOINT, MEET, NOT_MET


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


LOOKED_AT = (CheckOutcome.FLAGGED, CheckOutcome.BROKEN)
INTENT_KEPT, SOFT_VERIFICATION = "intent kept", "soft verification"
DEVICE_TIME = "device time"
"""Where it held, what could be hidden after a call is no question (`flags`)."""
ORDER = "order"
RE_MEASURED = "re-measured"
"""A speed-up above what is usual, or beyond the hardware limit, was timed once more."""
SPOILING = ("noise", "machine")
"""The checks by which a timing itself says that it was spoilt."""


TRIAL = "trial "
"""With what the name of a check begins that is one trial."""
OUT_OF_TIME = "the time for checks was used up"
_SLOW = "the candidate is slow"
LEFT_OUT = "left out: "
AT_THE_END = "after the last trial"
_COUNTED = re.compile(r"(?<=in )\d+ trials$")

BY_PAIRS = "the pairs of this timing alone tell the speed-up within "


_TWO_CLOCKS = re.compile(r"a call's kernels take (?P<kernels>\S+) ms .*the call takes (?P<call>[\d.e+-]+) ms")
MORE_THAN_THE_CALL = (
    "; the kernels' time is the larger since the clocks time different calls: the device's adds up the kernels of "
    "calls that the driver records, the evaluator's takes off what asking a worker takes, as measured with the "
    "reference. They may be apart by a quarter of the call, its launches, and as much as the reference's calls scatter "
    "and exceed their kernels"
)


def explained(check: str, standing: CheckOutcome, detail: str) -> str:
    """The detail with why kernels take longer than their call, where it says that they do and it is left at that."""
    clocks = _TWO_CLOCKS.match(detail) if check == DEVICE_TIME and standing is CheckOutcome.HELD else None
    is_told = not clocks or MORE_THAN_THE_CALL in detail or float(clocks["kernels"]) <= float(clocks["call"])
    return detail if is_told else detail + MORE_THAN_THE_CALL


DEVICE_DECIDES = "the device's clock decides"
OTHER_PAIRS = "; the speed-up is told by other pairs, of which the device's clock timed the kernels"
_CALLS = re.compile(r"(\d+) call\(s\)")


def pairs_counted(detail: str, is_by_device: bool) -> str:
    """How many pairs the evaluator's clock timed, with that others decide where they do. Older engines wrote
    "call(s)", and left the others out."""
    detail = _CALLS.sub(lambda found: f"{found[1]} call{'' if found[1] == '1' else 's'}", detail)
    return detail + OTHER_PAIRS if is_by_device and OTHER_PAIRS not in detail else detail


def why_left_out(reason: str) -> str:
    """Why a trial was not made. Older engines called a kernel slow when the time for checks was used up."""
    return OUT_OF_TIME if reason == _SLOW else reason


def trials_in_words(made: int, left_out: Sequence[str]) -> str:
    """ "14 trials", "the 4 trials that were run; 10 were left out, the time for checks was used up"; `left_out` says of
    each that was not made why."""
    if not left_out:
        return f"{made} trial{'' if made == 1 else 's'}"
    run = f"the {made} trials that were" if made != 1 else "the one trial that was"
    return f"{run} run; {left_out_in_words(left_out)}"


def left_out_in_words(left_out: Sequence[str]) -> str:
    """ "10 were left out, the time for checks was used up", of trials each with its reason."""
    counts = Counter(map(why_left_out, left_out)).most_common()
    return " and ".join(f"{n:,} {'was' if n == 1 else 'were'} left out, {reason}" for reason, n in counts)


def as_told(check_records: Iterable[CheckRecord], limit_ms: float | None = None) -> list[CheckRecord]:
    """The checks of one saved result with what older engines wrote of them put right: they counted trials that were
    left out as made, called the width of the pairs alone what is known, did what `_as_timed_twice` and
    `pairs_counted` say, and left open why kernels take longer than their call. `limit_ms` is the hardware limit, None
    where it is not known."""
    records = list(check_records)
    trials = [record for record in records if record.check.startswith(TRIAL)]
    left_out = [
        record.detail.removeprefix(LEFT_OUT)
        for record in trials
        if record.standing is CheckOutcome.ABSENT and record.detail.startswith(LEFT_OUT)
    ]
    is_by_device = any(record.check == DEVICE_TIME and DEVICE_DECIDES in record.detail for record in records)
    records = [
        replace(record, detail=pairs_counted(record.detail, is_by_device)) if record.check == ORDER else record
        for record in records
    ]
    made = sum(record.standing is not CheckOutcome.ABSENT for record in trials)
    return _as_timed_twice([replace(record, detail=_told(record, made, left_out)) for record in records], limit_ms)


def _told(record: CheckRecord, made: int, left_out: Sequence[str]) -> str:
    detail = explained(record.check, record.standing, record.detail.replace("speed-up known within ", BY_PAIRS))
    if detail.startswith(LEFT_OUT):
        return f"{LEFT_OUT}{why_left_out(detail.removeprefix(LEFT_OUT))}"
    if not left_out:
        return detail
    return _COUNTED.sub(trials_in_words(made, left_out), detail).replace("after all trials", AT_THE_END)


def _as_timed_twice(records: Sequence[CheckRecord], limit_ms: float | None) -> list[CheckRecord]:
    """Older engines called two timings far apart confirmed where their intervals met, and let the check hold; nor did
    always write which of the two was spoilt: where it is not the one that is kept, it was the other. And
    they called two not confirmed that agree where their intervals do not meet, beyond the limit or not."""
    return [_as_confirmed(record, records, limit_ms) if record.check == RE_MEASURED else record for record in records]


C = TypeVar("C", bound=CheckRecord)


def as_limited(record: C, limit_ms: float | None) -> C:
    """What was said of a kernel beyond the hardware limit, where that was measured again since and the kernel is not
    beyond it."""
    twice = timed_twice.read(record.detail) if record.check == RE_MEASURED else None
    if twice is None or limit_ms is None or not twice.is_beyond or twice.lower_ms < limit_ms:
        return record
    head, _, against = twice.end.partition(BUT)
    rest = against.partition(" and ")[2]
    said = re.sub(
        r"hardware limit of \S+ ms", rf"\g<0> (measured again since: {limit_ms:.3g} ms)", record.detail, count=1
    )
    standing = CheckOutcome.HELD if twice.agree and not rest else record.standing
    return replace(
        record, standing=standing, detail=said.removesuffix(twice.end) + head + (f"{BUT}{rest}" if rest else "")
    )


def _as_confirmed(record: CheckRecord, beside: Sequence[CheckRecord], limit_ms: float | None) -> CheckRecord:
    record = as_limited(record, limit_ms)
    twice = timed_twice.read(record.detail)
    if twice is not None and twice.agree and twice.end == NOT_MET and limit_ms is not None and not twice.workload:
        beyond = f"{BEYOND}{limit_ms:.3g} ms and " if twice.lower_ms < limit_ms else ""
        return replace(record, detail=f"{record.detail.removesuffix(NOT_MET)}{CONFIRMED}{BUT}{beyond}{DISJOINT}")
    if twice is None or not twice.end.startswith((CONFIRMED, MEET)):
        return record
    standing, end = record.standing, twice.end
    if standing is CheckOutcome.FLAGGED and end == CONFIRMED:
        spoilt = next((row for row in beside if row.check in SPOILING and row.standing is CheckOutcome.FLAGGED), None)
        kept, other = twice.kept_and_not
        seen = f"in {kept} the check “{spoilt.check}” was flagged: {spoilt.detail}" if spoilt else ""
        end += f"{BUT}{seen or f'noise or a busy machine spoilt {other}'}"
    if not twice.agree:
        standing, end = CheckOutcome.FLAGGED, end.replace(CONFIRMED, MEET, 1)
    return replace(record, standing=standing, detail=f"{record.detail.removesuffix(twice.end)}{end}")


class StandingChecks:
    """What stands of a candidate's checks: of each check the last word of each stage, and what was noted about its own
    edit and by a judge. A timing that finds a wrong result ends as a check, which must not hide what the check before
    it had shown. A thin one keeps no more than what tells whether a person should look, which is a detail of
    `RE_MEASURED` alone. `limit_ms` is the hardware limit of the run, None where it is not known."""

    __slots__ = ("_found", "_is_thin", "_limit_ms")

    def __init__(self, is_thin: bool = False, limit_ms: float | None = None) -> None:
        self._is_thin, self._limit_ms = is_thin, limit_ms
        self._found: dict[tuple[str, str, Group, str], tuple[StagedCheck, ...]] = {}

    def take(self, stage: str, check_records: Iterable[CheckRecord], by: str = "") -> None:
        """The checks of one result; `by` tells those apart that have one name and one stage."""
        same: dict[tuple[str, str, Group, str], list[StagedCheck]] = {}
        told = _as_timed_twice([*check_records], self._limit_ms) if self._is_thin else None
        for check_record in as_told(check_records, self._limit_ms) if told is None else told:
            is_bare = self._is_thin and check_record.check != RE_MEASURED
            detail = ("", None, None) if is_bare else (check_record.detail, check_record.value, check_record.limit)
            staged = StagedCheck(
                check_record.group, check_record.check, check_record.standing, *detail, stages=(stage,)
            )
            same.setdefault((stage, by, check_record.group, check_record.check), []).append(staged)
        for key, several in same.items():
            self._found.pop(key, None)  # the last word stands last
            if not self._is_thin or key[3] == DEVICE_TIME or any(staged.standing in LOOKED_AT for staged in several):
                self._found[key] = tuple(several)

    def take_edit(self, flags: Iterable[str]) -> None:
        """Sentences about what a person should look at in the edit."""
        self.take("write", _flagged(INTENT_KEPT, flags))

    def take_review(self, label: str, flags: Iterable[str]) -> None:
        """Sentences of a judge about the edit; its last review under each label counts."""
        self._found.pop(("check", label, Group.SCREENING, SOFT_VERIFICATION), None)
        self.take("check", _flagged(SOFT_VERIFICATION, flags), by=label)

    def take_reviews_of(self, written: StandingChecks) -> None:
        """What a judge said of the kernel that this one only tunes."""
        self._found |= {key: staged for key, staged in written._found.items() if key[3] == SOFT_VERIFICATION}

    @property
    def is_re_measured(self) -> bool:
        """Whether it keeps what was said of a kernel that was timed twice."""
        return any(check == RE_MEASURED for *_, check in self._found)

    def worst(self) -> list[StagedCheck]:
        """One per check, by group, the worst first."""
        return worst_of_stages(check_record for staged in self._found.values() for check_record in staged)


def _flagged(check: str, sentences: Iterable[str]) -> list[CheckRecord]:
    return [CheckRecord(Group.SCREENING, check, CheckOutcome.FLAGGED, sentence) for sentence in sorted(sentences)]


def worst_of_stages(check_records: Iterable[StagedCheck]) -> list[StagedCheck]:
    """One record per check, by group, the worst first. A check made in several stages shows where it stood worst.

    Several of one check in one stage are several findings and all stay.
    """
    by_check: dict[tuple[Group, str], list[StagedCheck]] = {}
    for check_record in check_records:
        by_check.setdefault((check_record.group, check_record.check), []).append(check_record)
    groups = list(Group)
    kept = (check_record for same in by_check.values() for check_record in _worst_stage(same))
    return sorted(kept, key=lambda check_record: (groups.index(check_record.group), -check_record.standing.severity))


def _worst_stage(same: Sequence[StagedCheck]) -> list[StagedCheck]:
    stages = tuple(dict.fromkeys(stage for check_record in same for stage in check_record.stages))
    worst = max(reversed(same), key=lambda check_record: check_record.standing.severity)
    return [replace(check_record, stages=stages) for check_record in same if check_record.stages == worst.stages]
