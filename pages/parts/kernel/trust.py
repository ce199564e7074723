"""How far a kernel can be trusted, in one sentence. Pure: knows rows of the index, not how they are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pages.parts import wording
from storage.proof import Proof, Standing, counted
from storage.records import Verdict


@dataclass(frozen=True, slots=True)
class Trust:
    """The overall standing. `tone` is green (correct), orange (needs a look), red (failed),
    blue (not judged yet) or gray (nothing recorded)."""

    tone: wording.Tone
    sentence: str
    rest: str = ""


def overall(verdict: Verdict | None, is_timed: bool, proofs: Sequence[Proof]) -> Trust:
    """What stands behind a verdict, all checks together."""
    if not proofs:
        return _unrecorded(verdict)
    told = counted(proofs)
    broken = _named(proofs, Standing.BROKEN)
    match verdict:
        case None:
            return Trust("blue", f"Not judged yet: {told} so far.")
        case Verdict.PASSED if broken:
            return Trust("red", f"Correct, although {broken} failed.", f"{told}.")
        case Verdict.PASSED:
            word = "Correct" if is_timed else "Correct, not timed yet"
            flagged = _named(proofs, Standing.FLAGGED)
            return Trust(
                "orange" if flagged else "green", f"{word}: {told}.", f"Flagged: {flagged}." if flagged else ""
            )
        case Verdict.COMPILE_ERROR:
            return Trust("red", "Does not compile: neither checked nor timed.", f"{told}.")
        case _:
            why = f": {broken} failed" if broken else ""
            return Trust("red", f"{_rejected(verdict, proofs)}{why}.", f"{told}.")


def _named(proofs: Sequence[Proof], standing: Standing) -> str:
    names = dict.fromkeys(row.check for row in proofs if row.standing is standing)
    return ", ".join(f"“{name}”" for name in names)


def _rejected(verdict: Verdict, proofs: Sequence[Proof]) -> str:
    groups = dict.fromkeys(str(row.group) for row in proofs if row.standing is Standing.BROKEN)
    if verdict is Verdict.REFUSED:
        return f"Refused{' by ' if groups else ''}{' and '.join(groups)}"
    return f"Failed, {wording.VERDICT_NAME[verdict]}"


def _unrecorded(verdict: Verdict | None) -> Trust:
    older = "Individual checks were not recorded for this kernel; the known figures are below."
    if verdict is None:
        return Trust("blue", "Not judged yet.")
    if verdict is Verdict.PASSED:
        return Trust("gray", "Correct.", older)
    return Trust("red", f"{_rejected(verdict, ())}.", older)
