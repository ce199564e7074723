"""A candidate and everything known about it so far. A part of History; touches no file."""

from __future__ import annotations

from dataclasses import dataclass

from storage import events as ev
from storage.records import CheckResult, CompileResult, ProfileResult, TimingResult, Verdict


@dataclass(frozen=True, slots=True)
class Attempt:
    """A candidate and everything known about it so far."""

    created: ev.CandidateCreated
    compiled: CompileResult | None = None
    checked: CheckResult | None = None
    timed: TimingResult | None = None
    profiled: ProfileResult | None = None
    is_profile_tried: bool = False
    diagnosis_blob: str | None = None
    diagnosis_step: int | None = None
    repairs_tried: int = 0

    @property
    def candidate_id(self) -> str:
        """Id of the candidate."""
        return self.created.candidate_id

    @property
    def verdict(self) -> Verdict | None:
        """None until compile and check have spoken."""
        if self.compiled is not None and not self.compiled.is_ok:
            return self.compiled.verdict
        return self.checked.verdict if self.checked else None

    @property
    def has_failed(self) -> bool:
        """True once a verdict other than passed stands."""
        return self.verdict not in (None, Verdict.PASSED)
