"""What a strategy may ask of the loop. Knows the vocabulary, not how a move is carried out."""

from __future__ import annotations

from dataclasses import dataclass

from storage.records import DepthOutcome, RunState, StepKind


@dataclass(frozen=True, slots=True)
class Step:
    """One unit of work. `candidate_id` is the kernel it is about: the base of an optimisation, None for synthesis."""

    kind: StepKind
    depth: int
    candidate_id: str | None = None


@dataclass(frozen=True, slots=True)
class Settle:
    """End the current depth."""

    depth: int
    outcome: DepthOutcome
    candidate_id: str | None
    base_id: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Finish:
    """End the run."""

    state: RunState
    reason: str


Move = Step | Settle | Finish
