"""What the evaluator's clock says about calls once the question's own cost is taken off, and about a session of them.

The cost is the part of the reference's calls that the reference itself did not need: both sides pay it alike, and the
candidate has no hand in it. Pure; knows no worker.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from storage.results.evaluation_results import median_ranks

QUANTILE = 0.1
LEAST_NS = 1_000
BOUND_NS = 150_000
# What calls that share a question may differ by, each: what noise adds to a question is divided among them.
SHARED_BOUND_NS = 75_000
BOUND_SHARE = 0.25
BOUND_SPREADS = 4
# What recording kernels may cost: 8 us a launch were measured, and a share for what shares the host.
RECORDED = 1.5
RECORDED_NS = 25_000
# How many times as long the first call of a turn may be on the device as the others; calls that say anything about it.
LEAD = 4.0
FEW_CALLS = 4
Pairs = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Call:
    """One timed call, in nanoseconds.

    Attributes:
        evaluator_ns: from letting the worker run until its answer is here.
        worker_ns: what the worker's own clock says about the call; of a candidate, a claim.
        halt_ns: from the answer until the last thread stood still.
        waited_ns: how long threads of the worker were ready meanwhile and had no processor.
        sharing: calls that one question asked for. Evaluator's and worker's times are an equal share of the question's.
    """

    evaluator_ns: int
    worker_ns: int
    halt_ns: int = 0
    waited_ns: int = 0
    sharing: int = 1

    @property
    def gap_ns(self) -> int:
        """Evaluator's time that the worker does not account for."""
        return self.evaluator_ns - self.worker_ns


@dataclass(frozen=True, slots=True)
class TracedCall:
    """One call of a turn whose kernels the driver recorded: their own times added up, and how many were launched.

    The gaps between them do not count: recording makes launches slower, and so the gaps longer.

    Attributes:
        calls: launches and nanoseconds of each call of the turn, in order.
        asks_the_host: whether numbers were copied from the device to the host.
    """

    call: Call
    is_attached: bool
    kernels_ns: float
    launches: float
    calls: Sequence[tuple[int, int]] = ()
    asks_the_host: bool = False

    @property
    def lead(self) -> float:
        """How many times as long the first call's kernels took as a later call's; 1 where there are few calls."""
        if len(self.calls) < FEW_CALLS:
            return 1.0
        first, *later = (took for _, took in self.calls)
        return first / max(1.0, statistics.median(later)) if first else 1.0


@dataclass(frozen=True, slots=True)
class Clock:
    """The evaluator's clock, calibrated. `spread_ns` says how sharp it is: calls not much longer show as noise."""

    cost_ns: int
    spread_ns: int

    @classmethod
    def of(cls, reference: Sequence[Call]) -> Clock:
        """A low quantile of the gaps: too low a cost makes both sides slower, and a speed-up smaller."""
        gaps = [call.gap_ns for call in reference]
        low = _low(gaps)
        return cls(low, statistics.median_low(gaps) - low)

    def milliseconds(self, calls: Sequence[Call]) -> float:
        """The quickest of some calls: other load only adds time."""
        quickest = min(call.evaluator_ns for call in calls) - self.cost_ns
        return max(quickest, LEAST_NS) / 1e6


@dataclass(frozen=True, slots=True)
class Agreement:
    """How the two clocks compare: medians in nanoseconds, and the difference of low gaps that noise may explain.

    Low gaps, because a busy machine lengthens many of them, and a clock that lies lengthens all. The bound never comes
    from the candidate's own spread, which it could widen.
    """

    claimed_ns: float
    evaluator_ns: float
    gap_ns: int
    reference_gap_ns: int
    bound_ns: float
    overstated: int

    @classmethod
    def between(cls, candidate: Sequence[Call], reference: Sequence[Call]) -> Agreement:
        """The agreement of a session's calls."""
        gaps = sorted(call.gap_ns for call in reference)
        spread = gaps[len(gaps) * 3 // 4] - gaps[len(gaps) // 4]
        evaluator_ns = statistics.median(call.evaluator_ns for call in candidate)
        sharing = min(call.sharing for call in candidate)
        return cls(
            claimed_ns=statistics.median(call.worker_ns for call in candidate),
            evaluator_ns=evaluator_ns,
            gap_ns=_low([call.gap_ns for call in candidate]),
            reference_gap_ns=_low(gaps),
            bound_ns=max(BOUND_NS / sharing, SHARED_BOUND_NS, BOUND_SHARE * evaluator_ns, BOUND_SPREADS * spread),
            overstated=sum(call.gap_ns < 0 for call in candidate),
        )

    @property
    def holds(self) -> bool:
        """False when the worker's clock cannot have run like the evaluator's."""
        return not self.overstated and self.gap_ns - self.reference_gap_ns <= self.bound_ns

    def __str__(self) -> str:
        return (
            f"a median call takes {self.claimed_ns / 1e6:.4g} ms by the worker's clock and, with the asking, "
            f"{self.evaluator_ns / 1e6:.4g} ms by the evaluator's; the two differ by at least {self.gap_ns / 1e6:.3g} "
            f"ms, in the reference's calls by {self.reference_gap_ns / 1e6:.3g} ms, and may by "
            f"{self.bound_ns / 1e6:.3g} ms more than there"
        )


@dataclass(frozen=True, slots=True)
class DeviceClock:
    """What the driver's records say of both sides: a second clock, on the device itself.

    Attributes:
        pairs: milliseconds that the kernels of a candidate's and of a reference's call take, in each recorded pair of
            turns; empty where the driver gives no records.
        evaluator_ns, traced_ns: the candidate's call by the evaluator's clock without and with recording.
        slower: how much longer recording makes the reference's calls, at least 1.
        lead, reference_lead: how many times as long the first call of a turn took on the device as the others.
        asks_the_host: whether the candidate copied numbers to the host.
    """

    pairs: Pairs
    launches: float = 0.0
    reference_launches: float = 0.0
    evaluator_ns: float = 0.0
    traced_ns: float = 0.0
    slower: float = 1.0
    lead: float = 1.0
    reference_lead: float = 1.0
    asks_the_host: bool = False

    @classmethod
    def of(cls, session: Session, candidate: Sequence[TracedCall], reference: Sequence[TracedCall]) -> DeviceClock:
        """The clock of a session's calls and of those that were recorded beside them, in pairs."""
        pairs = [pair for pair in zip(candidate, reference, strict=True) if all(call.kernels_ns > 0 for call in pair)]
        if not pairs:
            return cls([])
        candidate, reference = ([pair[side] for pair in pairs] for side in (0, 1))
        plain_ns, reference_ns = (
            statistics.median(call.evaluator_ns for call in calls)
            for calls in (session.candidate_calls, session.reference_calls)
        )
        return cls(
            pairs=[(candidate.kernels_ns / 1e6, reference.kernels_ns / 1e6) for candidate, reference in pairs],
            launches=statistics.median(call.launches for call in candidate),
            reference_launches=statistics.median(call.launches for call in reference),
            evaluator_ns=plain_ns,
            traced_ns=min(call.call.evaluator_ns for call in candidate),
            slower=max(1.0, min(call.call.evaluator_ns for call in reference) / reference_ns),
            lead=statistics.median(call.lead for call in candidate),
            reference_lead=statistics.median(call.lead for call in reference),
            asks_the_host=any(call.asks_the_host for call in candidate),
        )

    @property
    def ratios(self) -> list[float]:
        """The speed-up in each recorded pair."""
        return [reference / candidate for candidate, reference in self.pairs]

    @property
    def computes_ahead(self) -> bool:
        """True when the first call of a turn did work of the others: all inputs of a turn lie there when it begins."""
        return self.lead > LEAD * max(1.0, self.reference_lead)

    @property
    def behaves(self) -> bool:
        """False when the candidate's calls took far longer while they were recorded: it did other work then."""
        allowed_ns = RECORDED * self.slower * self.evaluator_ns + RECORDED_NS * (1 + self.launches)
        return not self.pairs or self.traced_ns <= allowed_ns


def _low(gaps: Sequence[int]) -> int:
    return sorted(gaps)[int(QUANTILE * (len(gaps) - 1))]


@dataclass(slots=True)
class Session:
    """Turns of calls, the candidate's and the reference's of the same pair at the same place."""

    candidate: list[Sequence[Call]] = field(default_factory=list)
    reference: list[Sequence[Call]] = field(default_factory=list)

    def add(self, candidate: Sequence[Call], reference: Sequence[Call]) -> None:
        """One pair of turns."""
        self.candidate.append(candidate)
        self.reference.append(reference)

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
        """Evaluator's clock against the candidate's."""
        return Agreement.between(self.candidate_calls, self.reference_calls)

    @property
    def pairs(self) -> Pairs:
        """Milliseconds of candidate and reference, quickest call of each turn."""
        clock = self.clock
        return [
            (clock.milliseconds(candidate), clock.milliseconds(reference))
            for candidate, reference in zip(self.candidate, self.reference, strict=True)
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
    """Half the width of the speed-up's interval, relative to the speed-up."""
    ratios = [reference / candidate for candidate, reference in pairs]
    low, high = interval(ratios)
    return (high - low) / 2 / statistics.median(ratios)


def against_itself(pairs: Pairs) -> list[float]:
    """The reference's turns of neighbouring pairs, one over the other: what a speed-up of nothing looks like.

    Every other one upside down: the later turn of two may follow one of the same side, and be the quicker for it.
    """
    turns = [reference for _, reference in pairs]
    ratios = [first / second for first, second in zip(turns[::2], turns[1::2], strict=False)]
    return [1 / ratio if number % 2 else ratio for number, ratio in enumerate(ratios)]


def waited_share(calls: Sequence[Call]) -> float:
    """How much of the calls' time threads had to wait for a processor."""
    return sum(call.waited_ns for call in calls) / max(1, sum(call.evaluator_ns for call in calls))
