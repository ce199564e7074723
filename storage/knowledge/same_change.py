"""One change of one kernel is one attempt, however many rows tell of it. Pure.

Runs that a recording answers alike write the same kernels, and a timing that an evaluator remembered, or a run folder
that was copied, is told more than once. Rows are joined where they are read: files keep what each run has told, so a
base from before they were joined reads alike, and an import still knows each row by its id.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from storage.knowledge.records import Evidence, Outcome

EvidenceId = tuple[str, str, str]


def once(rows: Iterable[Evidence]) -> tuple[list[Evidence], dict[EvidenceId, tuple[Evidence, ...]]]:
    """Each change once, in the order in which they were first told; and the rows of those that several tell of, by the
    id of the attempt."""
    attempts: list[Evidence] = []
    places: dict[tuple[str, ...], dict[str, int]] = {}
    several: dict[int, list[Evidence]] = {}
    for row in rows:
        place = None
        # Without both sources or the device nobody can tell that it is the same change.
        if row.parent_hash and row.child_hash and row.device:
            of_tasks = places.setdefault(_change(row), {})
            place = _place(of_tasks, row.task_hash)
            of_tasks.setdefault(row.task_hash, len(attempts) if place is None else place)
        if place is None:
            attempts.append(row)
        else:
            several.setdefault(place, [attempts[place]]).append(row)
    for place, together in several.items():
        attempts[place] = as_one(together)
    return attempts, {attempts[place].evidence_id: tuple(together) for place, together in several.items()}


def _change(row: Evidence) -> tuple[str, ...]:
    """What is alike in rows of one change, its task's source apart. Two names for it are evidence of two techniques."""
    return (
        row.parent_hash, row.child_hash, row.technique, row.task, row.language, row.toolchain, row.device,
        row.precision,
    )  # fmt: skip


def _place(of_tasks: Mapping[str, int], task_hash: str) -> int | None:
    """Where a change stands on this task; rows from before tasks' sources were told apart go with the first."""
    if task_hash in of_tasks:
        return of_tasks[task_hash]
    if not task_hash:
        return next(iter(of_tasks.values()), None)
    return of_tasks[""] if list(of_tasks) == [""] else None


def as_one(rows: Sequence[Evidence]) -> Evidence:
    """The attempt that these rows tell of, under the id of the first that was measured in this home, else of the first.

    A kernel that gave a wrong result once counts as wrong. Else the gain is the geometric mean of its timings: gains
    are factors, and no session's noise is known to be less than another's. The interval holds that of every timing,
    and the kernel is faster or slower only where every timing says so.
    """
    wrong = [row for row in rows if row.outcome is Outcome.INCORRECT]
    timed = [] if wrong else timings(rows)
    deciding = wrong or timed or rows
    first = min(deciding, key=lambda row: bool(row.origin))
    state = first.state or next((row.state for row in rows if row.state), "")
    first = replace(first, state=state, at=max(row.at for row in rows))
    if len(timed) < 2:
        return first
    return replace(
        first,
        outcome=first.outcome if len({row.outcome for row in timed}) == 1 else Outcome.SAME,
        gain=_mean(row.gain for row in timed),
        gain_low=min((row.gain_low for row in timed if row.gain_low is not None), default=None),
        gain_high=max((row.gain_high for row in timed if row.gain_high is not None), default=None),
        over_eager=_mean(row.over_eager for row in timed),
        over_best=_mean(row.over_best for row in timed),
    )


def timings(rows: Iterable[Evidence]) -> list[Evidence]:
    """The rows that hold a measured gain, each timing once: two never give the same figures to the last digit. Of one
    that several rows tell, a row that was measured in this home, if any, else the first."""
    held: dict[tuple[float | None, ...], Evidence] = {}
    for row in sorted(rows, key=lambda row: bool(row.origin)):
        if row.outcome.is_timed and row.gain is not None:
            held.setdefault((row.gain, row.gain_low, row.gain_high), row)
    return list(held.values())


def in_words(rows: Sequence[Evidence]) -> str:
    """How often the change of these rows was timed, and in how many runs it was made; empty for a single row."""
    if len(rows) < 2:
        return ""
    runs, timed = len({row.run_id for row in rows}), len(timings(rows))
    where = f"in {runs} runs" if runs > 1 else f"as {len(rows)} kernels of its run"
    if timed == runs > 1:
        return f"timed {where}"
    how_often = {0: "never timed", 1: "timed once"}.get(timed, f"timed {timed} times")
    return f"made {where}, {how_often}"


def _mean(factors: Iterable[float | None]) -> float | None:
    logs = [math.log(factor) for factor in factors if factor is not None]
    return math.exp(math.fsum(logs) / len(logs)) if logs else None
