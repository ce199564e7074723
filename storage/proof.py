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


@dataclass(frozen=True, slots=True)
class StagedProof(Proof):
    """One check of one candidate and the stages it was made in: write, compile, check, time."""

    stages: tuple[str, ...] = ()


def standing(found: Iterable[StagedProof]) -> list[StagedProof]:
    """One proof per check, by group, the worst first. A check made in several stages shows where it stood worst.

    Several of one check in one stage are several findings and all stay.
    """
    by_check: dict[tuple[Group, str], list[StagedProof]] = {}
    for proof in found:
        by_check.setdefault((proof.group, proof.check), []).append(proof)
    groups = list(Group)
    kept = (proof for same in by_check.values() for proof in _worst_stage(same))
    return sorted(kept, key=lambda proof: (groups.index(proof.group), -proof.standing.severity))


def _worst_stage(same: Sequence[StagedProof]) -> list[StagedProof]:
    stages = tuple(dict.fromkeys(stage for proof in same for stage in proof.stages))
    worst = max(reversed(same), key=lambda proof: proof.standing.severity)
    return [replace(proof, stages=stages) for proof in same if proof.stages == worst.stages]


WORDS = {
    Standing.HELD: "passed",
    Standing.FLAGGED: "flagged",
    Standing.BROKEN: "failed",
    Standing.ABSENT: "not possible",
}


def counted(proofs: Sequence[Proof]) -> str:
    """ "34 checks passed, 1 flagged, 2 not possible"; kinds that there are none of are left out."""
    number = {kind: sum(proof.standing is kind for proof in proofs) for kind in WORDS}
    told = [(number[kind], word) for kind, word in WORDS.items() if number[kind]]
    if not told:
        return "no checks"
    (first, word), *others = told
    return ", ".join([f"{first} {'check' if first == 1 else 'checks'} {word}", *(f"{n} {w}" for n, w in others)])
