"""What a timing session has seen so far: the calls of both sides, pair by pair, and the figures they give. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.evaluation.clock import Agreement, Call, Clock
from storage.records import median_ranks

Pairs = list[tuple[float, float]]


@dataclass(slots=True)
class Session:
    """Turns of calls, the candidate's and the reference's of the same pair at the same place."""

    candidate: list[Sequence[Call]] = field(default_factory=list)
    reference: list[Sequence[Call]] = field(default_factory=list)

    def add(self, mine: Sequence[Call], theirs: Sequence[Call]) -> None:
        """One pair of turns."""
        self.candidate.append(mine)
        self.reference.append(theirs)

    @property
    def candidate_calls(self) -> list[Call]:
        """All of them, in order."""
        return [call for turn in self.candidate for call in turn]

    @property
    def reference_calls(self) -> list[Call]:
        """All of them, in order."""
        return [call for turn in self.reference for call in turn]

    @property
    def clock(self) -> Clock:
        """Calibrated on every call of the reference."""
        return Clock.of(self.reference_calls)

    @property
    def agreement(self) -> Agreement:
        """Judge's clock against the candidate's."""
        return Agreement.between(self.candidate_calls, self.reference_calls)

    @property
    def pairs(self) -> Pairs:
        """Milliseconds of candidate and reference, quickest call of each turn."""
        clock = self.clock
        return [
            (clock.milliseconds(mine), clock.milliseconds(theirs))
            for mine, theirs in zip(self.candidate, self.reference, strict=True)
        ]

    @property
    def halt_ms(self) -> float:
        """Median time from a candidate's answer until its last thread stood still."""
        return statistics.median(call.halt_ns for call in self.candidate_calls) / 1e6


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Confidence interval of the median, as results state it."""
    ordered = sorted(ratios)
    low, high = median_ranks(len(ordered))
    return ordered[low], ordered[high]


def half_width(pairs: Pairs) -> float:
    """Of the speed-up's interval, relative to the speed-up."""
    ratios = [theirs / mine for mine, theirs in pairs]
    low, high = interval(ratios)
    return (high - low) / 2 / statistics.median(ratios)


def against_itself(pairs: Pairs) -> list[float]:
    """The reference's turns of neighbouring pairs, one over the other: what a speed-up of nothing looks like.

    Every other one upside down: the later turn of two may follow one of the same side, and be the quicker for it.
    """
    turns = [theirs for _, theirs in pairs]
    ratios = [first / second for first, second in zip(turns[::2], turns[1::2], strict=False)]
    return [1 / ratio if number % 2 else ratio for number, ratio in enumerate(ratios)]


def waited_share(calls: Sequence[Call]) -> float:
    """How much of the calls' time threads had to wait for a processor."""
    return sum(call.waited_ns for call in calls) / max(1, sum(call.judge_ns for call in calls))
