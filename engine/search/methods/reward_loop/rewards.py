"""The attempts of a run so far with their rewards. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from storage.run.record import Candidate, Record


@dataclass(frozen=True, slots=True)
class Rewarded:
    """One attempt that has ended: its step index, its kernel if it brought one, and its reward."""

    index: int
    candidate: Candidate | None
    reward: float


def rewarded(record: Record) -> list[Rewarded]:
    """The attempts so far that have a reward, oldest first."""
    return [
        Rewarded(done.depth, record.candidates.get(done.candidate_id or ""), done.reward)
        for done in record.concluded
        if done.reward is not None
    ]
