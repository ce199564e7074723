"""Which kernels of a run failed in the same way: messages that differ only in numbers are one error. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from storage.queries import AttemptRow
from storage.records import Verdict

_NUMBER = re.compile(r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?%?", re.IGNORECASE)


def kind(a: AttemptRow) -> tuple[Verdict | None, str]:
    """What two kernels that failed alike have in common."""
    return a.verdict, " ".join(_NUMBER.sub("#", a.message).split())


def alike(a: AttemptRow, attempts: Sequence[AttemptRow]) -> list[AttemptRow]:
    """Every kernel of the run that failed in the way of `a`, it included, oldest first; none for one that did not."""
    if a.verdict in (None, Verdict.PASSED) or not a.message:
        return []
    wanted = kind(a)
    return [one for one in attempts if one.message and kind(one) == wanted]


def sentence(a: AttemptRow, found: Sequence[AttemptRow]) -> str:
    """ "3 kernels of this run failed with this error; this is number 2."; empty where it is the only one."""
    if len(found) < 2:
        return ""
    place = [one.candidate_id for one in found].index(a.candidate_id) + 1
    return f"{len(found)} kernels of this run failed with this error; this is number {place}."
