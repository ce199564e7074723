"""When a judge's word against a correct kernel refuses it: only together with a measured finding. Pure.

Method: soft verification of KernelBlaster (arXiv 2602.14293, section 4.4). A claim alone is a flag for a person.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from storage.results.check_records import CheckOutcome, CheckRecord
from storage.run.record import Candidate

# The evaluator's checks whose flag bears a claim out, by name: the evaluator itself needs torch, which no engine loads.
# A flag says that a person should look; what is certain is refused by its check.
TOO_FAST = ("re-measured", "nothing finishes later")  # faster than the device allows, or than can be told
UNSEEN = ("task varies", "fresh inputs")  # the task or the timing could not have shown it
COUNTS: Mapping[str, Collection[str]] = {
    "work_dropped": {*TOO_FAST, *UNSEEN, "special values"},
    "library_called": {"no library fall-back", "no hidden code", "own computation", "device time"},
    "constant_folded": {*TOO_FAST, *UNSEEN},
}


def objection(candidate: Candidate, claims: Collection[str], evidence: str) -> str:
    """Why a kernel is refused: what is claimed of it, and the finding that bears it out; empty where none does."""
    for claim in claims:
        for check in _flagged(candidate):
            if check.check in COUNTS.get(claim, ()):
                claimed = claim.replace("_", " ")
                return f"Soft verification: {claimed}: {evidence}\nMeasured beside it, {check.check}: {check.detail}"
    return ""


def _flagged(candidate: Candidate) -> Iterator[CheckRecord]:
    for result in (candidate.compiled, candidate.checked, candidate.timed):
        yield from (check for check in (result.proofs if result else ()) if check.standing is CheckOutcome.FLAGGED)
