"""What a flagged check means to a person: whether it could change the verdict, and what is to be done. Knows checks by
name, not how one is made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from storage.results import timed_twice
from storage.results.check_records import (
    DEVICE_TIME,
    INTENT_KEPT,
    RE_MEASURED,
    SOFT_VERIFICATION,
    CheckOutcome,
    CheckRecord,
)
from storage.results.timed_twice import MEET

NOTHING_LATER = "nothing finishes later"
LOOK, NOTE = "look at this", "note"

NOTES: Mapping[str, str] = {
    "noise": "The speed-up is known less well than usual: compare intervals, or measure again on a quiet machine.",
    "machine": "Other programs took processors: measure again on a quiet machine.",
    "fresh processes": "Other programs took processors, and the interval covers all timings: measure again on a quiet "
    "machine.",
    "clock": "One call is about as short as what the clock resolves: take larger sizes to know the speed-up better.",
    "output layout": "Results lie in memory another way than the reference's: allow that where a program reads "
    "strides.",
    "task varies": "This is about the task, not the kernel: `tasks TASK --lint` says how well it tells wrong from "
    "right.",
    "special values": "NaN and infinities come out otherwise: where your inputs can hold them, set `special_values` to "
    "required in the task's file and run again.",
    "state_dict": "A checkpoint of the original does not load into this kernel's module.",
}
"""Flags that leave the verdict as it is."""

LOOKS: Mapping[str, str] = {
    NOTHING_LATER: "The gain is so short that work left running after the call could explain it: time it at larger "
    "sizes, where such work would be seen.",
    DEVICE_TIME: "A call takes longer or shorter than its kernels explain: look in forward for work on the host.",
    RE_MEASURED: "The speed-up is beyond what is usual or possible: find in the source what work is no longer done.",
    "precision kept": "The source names narrower types: make sure that they hold only parts of a value that is summed "
    "exactly.",
    "fresh inputs": "Every timed call had the same contents: look for results that are kept from one call to the next.",
    "other weights": "It was judged with the constructor's weights only: look for such values in the source.",
    INTENT_KEPT: "The change does something else than it says: read the difference to the kernel before.",
    SOFT_VERIFICATION: "The judging model doubts it: read what it says beside the difference to the kernel before.",
}
CONFIRMED_YET = (
    "Two timings agree, so the speed-up stands, known less well than usual: measure again on a quiet machine to know "
    "it better."
)
NOT_CONFIRMED = (
    "Two timings do not confirm each other: measure again on a quiet machine before you rely on the speed-up, and find "
    "in the source what work is no longer done."
)
"""Of a speed-up above what is usual that was timed twice."""
OTHERWISE = "Read what was found, and the source at the lines that it names."


@dataclass(frozen=True, slots=True)
class Flag:
    """One flagged check. `is_look`: it could change the verdict. `advice` says in a sentence what to do."""

    check: str
    is_look: bool
    advice: str

    @property
    def name(self) -> str:
        """What it is called on screen."""
        return LOOK if self.is_look else NOTE


def flags(check_records: Iterable[CheckRecord]) -> list[Flag]:
    """One for each check that is flagged, those to look at first.

    What could be done after a call is no question where the device's own records explain how long the call took.
    """
    checks = list(check_records)
    is_explained = any(row.check == DEVICE_TIME and row.standing is CheckOutcome.HELD for row in checks)
    found = list(dict.fromkeys(_flag(row, is_explained) for row in checks if row.standing is CheckOutcome.FLAGGED))
    return [flag for flag in found if flag.is_look] + [flag for flag in found if not flag.is_look]


def _flag(record: CheckRecord, is_explained: bool) -> Flag:
    check = record.check
    if check == RE_MEASURED and (twice := timed_twice.read(record.detail)):
        if twice.is_confirmed:
            return Flag(check, False, CONFIRMED_YET)
        return Flag(check, True, LOOKS[check] if twice.is_beyond else NOT_CONFIRMED)
    if check in NOTES:
        return Flag(check, False, NOTES[check])
    if check == NOTHING_LATER and is_explained:
        return Flag(check, False, "The device's own records explain the call's time: nothing is hidden after it.")
    return Flag(check, True, LOOKS.get(check, OTHERWISE))


def decided(check_records: Sequence[CheckRecord]) -> str:
    """Of a speed-up above what is usual, or beyond the hardware limit, why the kernel was timed once more, and which of
    the two timings' tests made it confirmed or one to look at; empty for any other."""
    record = next((row for row in check_records if row.check == RE_MEASURED), None)
    twice = timed_twice.read(record.detail) if record else None
    if record is None or twice is None:
        return ""
    again = f"so the kernel was timed again in fresh processes: {twice.first:.3g}×, then {twice.second:.3g}×. "
    at = f"at {twice.workload}, " if twice.workload else ""
    said = re.sub(r"(\d)x\b", r"\1×", f"{at}{twice.reason}, {again}")
    said = f"{said[:1].upper()}{said[1:]}"
    against = f"it is {twice.against}" if twice.is_beyond else twice.against
    if twice.is_confirmed and record.standing is CheckOutcome.HELD:
        return f"{said}The two agree and neither was spoilt by noise or a busy machine: confirmed."
    if twice.is_confirmed:
        return (
            f"{said}The two agree, so it is confirmed, though known less well than usual: {against}. Measure again "
            "on a quiet machine to know it better."
        )
    if not twice.agree:
        meet = "Their intervals meet, but" if twice.end.startswith(MEET) else "Their intervals do not meet:"
        return (
            f"{said}{meet} the two are {twice.times_apart:.2g} times apart, so neither confirms the other and it is to "
            f"look at; the lower one is kept, with all of its interval, {twice.lower_range}×."
            + (f" And {against}." if against else "")
        )
    if twice.is_beyond:
        return f"{said}The two agree, but {against}; so it is to look at."
    return f"{said}Their intervals do not meet, so it is to look at; the lower one is kept."


WORDS: Mapping[CheckOutcome, str] = {
    CheckOutcome.HELD: "passed",
    CheckOutcome.BROKEN: "failed",
    CheckOutcome.ABSENT: "not done",
}


def in_words(check_record: CheckRecord, found: Iterable[Flag]) -> str:
    """How a check ended, in words; `found` are the flags of all checks made with it."""
    if check_record.standing is not CheckOutcome.FLAGGED:
        return WORDS[check_record.standing]
    return next(flag.name for flag in found if flag.check == check_record.check)


def looks(check_records: Sequence[CheckRecord]) -> list[str]:
    """The check of each finding that could change the verdict."""
    found = flags(check_records)
    return [check_record.check for check_record in check_records if in_words(check_record, found) == LOOK]


def to_look_at(check_records: Sequence[CheckRecord]) -> int:
    """How many findings could change the verdict."""
    return len(looks(check_records))


def counted(check_records: Sequence[CheckRecord]) -> str:
    """ "34 checks passed, 1 to look at, 2 noted, 2 not done"; kinds that there are none of are left out."""
    found = flags(check_records)
    words = [in_words(check_record, found) for check_record in check_records]
    kinds = ("passed", "passed"), (LOOK, "to look at"), (NOTE, "noted"), ("failed", "failed"), ("not done", "not done")
    counts = [(words.count(word), told) for word, told in kinds if word in words]
    if not counts:
        return "no checks"
    (first, word), *others = counts
    return ", ".join([f"{first} {'check' if first == 1 else 'checks'} {word}", *(f"{n} {w}" for n, w in others)])
