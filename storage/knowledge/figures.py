"""From revisions to what is known by name, from attempts to figures. Pure.

Factors are averaged as whole numbers: their logarithms in units of 2^-48. Sums of these do not depend on their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from storage.knowledge.records import (
    Evidence,
    Figures,
    Outcome,
    Prior,
    Revision,
    RuleWords,
    State,
    Technique,
    Transition,
)

UNIT = 2**48
PRIOR_ATTEMPTS = 2  # as many attempts a prior weighs
INHERITED = 0.8  # of the gain and the confidence
NOTHING_KNOWN = (0.0, 0.5)


def log_units(factor: float) -> int:
    """The logarithm of a factor as a whole number."""
    return round(math.log(factor) * UNIT)


def _factor(units: float) -> float:
    return math.exp(units / UNIT)


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums over attempts. `timed` have a measured gain, whose middle two are equal where their number is odd."""

    attempts: int = 0
    faster: int = 0
    same: int = 0
    slower: int = 0
    incorrect: int = 0
    not_compiled: int = 0
    patch_failed: int = 0
    timed: int = 0
    gain_units: int = 0
    low_median: float | None = None
    high_median: float | None = None
    predictions: int = 0
    predicted_units: int = 0
    last_used: float | None = None


_COUNTED = {
    Outcome.FASTER: "faster",
    Outcome.SAME: "same",
    Outcome.SLOWER: "slower",
    Outcome.INCORRECT: "incorrect",
    Outcome.NOT_COMPILED: "not_compiled",
    Outcome.PATCH_FAILED: "patch_failed",
}


def tally(rows: Iterable[Evidence]) -> Tally:
    """Sums over these attempts."""
    counts = dict.fromkeys(_COUNTED.values(), 0)
    gains: list[float] = []
    predicted: list[int] = []
    times: list[float] = []
    for row in rows:
        counts[_COUNTED[row.outcome]] += 1
        times.append(row.at)
        if row.gain is not None and row.outcome.is_timed:
            gains.append(row.gain)
        if row.predicted_gain is not None:
            predicted.append(log_units(row.predicted_gain))
    gains.sort()
    middle = len(gains) // 2
    return Tally(
        attempts=len(times),
        **counts,
        timed=len(gains),
        gain_units=sum(map(log_units, gains)),
        low_median=gains[(len(gains) - 1) // 2] if gains else None,
        high_median=gains[middle] if gains else None,
        predictions=len(predicted),
        predicted_units=sum(predicted),
        last_used=max(times, default=None),
    )


@dataclass(frozen=True, slots=True)
class Known:
    """What is known by name at one moment; priors by state and technique, `rules` by the failure rule they are
    about. `transitions` in the order they were made."""

    states: Mapping[str, State]
    techniques: Mapping[str, Technique]
    priors: Mapping[tuple[str, str], Prior]
    transitions: Sequence[Transition] = ()
    rules: Mapping[str, RuleWords] = field(default_factory=dict)


def revisions_in_force(revisions: Sequence[Revision]) -> list[Revision]:
    """The revisions that count: neither reverted, nor the revert of another. Later ones judge those before them."""
    in_force: list[Revision] = []
    reverted: set[str] = set()
    for revision in reversed(revisions):
        if revision.revision_id in reverted:
            continue
        if revision.reverts:
            reverted.add(revision.reverts)
        in_force.append(revision)
    return in_force[::-1]


def known_by(revisions: Sequence[Revision]) -> Known:
    """What these revisions say, the later in place of the earlier."""
    counting = revisions_in_force(revisions)
    return Known(
        {state.name: state for revision in counting for state in revision.states},
        {technique.name: technique for revision in counting for technique in revision.techniques},
        {(prior.state, prior.technique): prior for revision in counting for prior in revision.priors},
        [transition for revision in counting for transition in revision.transitions],
        {rule.rule: rule for revision in counting for rule in revision.rules},
    )


@dataclass(frozen=True, slots=True)
class Reckoning:
    """Figures from what is known and from sums over attempts; `of(technique, state)` gives those, of all states for
    None."""

    known: Known
    of: Callable[[str, str | None], Tally]

    def figures(self, technique: str, state: str | None = None) -> Figures:
        """What the evidence says of a technique; in a state with what that inherits."""
        return figures_of(self.of(technique, state), *self._prior(technique, state))

    def techniques_of(self, state: str) -> list[str]:
        """Techniques in use with a prior or evidence in a state, or in those that it inherits from; by name."""
        techniques = self.known.techniques
        return sorted(
            n for n, technique in techniques.items() if not technique.is_disabled and self.is_known_in(n, state)
        )

    def is_known_in(self, technique: str, state: str) -> bool:
        """Whether a technique has a prior or evidence in a state, or in those that it inherits from."""
        return any(self._has(technique, line_state) for line_state in self._line(state))

    def inherited_from(self, technique: str, state: str) -> str:
        """The state whose knowledge of a technique stands in for a missing prior; empty where there is none."""
        if (state, technique) in self.known.priors:
            return ""
        return next((line_state for line_state in self._line(state)[1:] if self._has(technique, line_state)), "")

    def _line(self, state: str) -> list[str]:
        """The state, the one it inherits from, and so on."""
        line = [state]
        while (here := self.known.states.get(line[-1])) and here.inherits and here.inherits not in line:
            line.append(here.inherits)
        return line

    def _has(self, technique: str, state: str) -> bool:
        return (state, technique) in self.known.priors or self.of(technique, state).attempts > 0

    def _prior(self, technique: str, state: str | None) -> tuple[float, float]:
        """The logarithm of the expected gain in units, and the confidence, before this state's attempts."""
        if state is None:
            return self._over_all(technique)
        prior: tuple[float, float] | None = None
        for line_state in reversed(self._line(state)):
            if stated := self.known.priors.get((line_state, technique)):
                prior = log_units(stated.gain), stated.confidence
            elif prior:
                prior = log_units(1 + INHERITED * (_factor(prior[0]) - 1)), INHERITED * prior[1]
            if line_state != state and (seen := self.of(technique, line_state)).attempts:
                there = figures_of(seen, *(prior or NOTHING_KNOWN))
                prior = log_units(there.expected_gain), there.confidence
        return prior or NOTHING_KNOWN

    def _over_all(self, technique: str) -> tuple[float, float]:
        priors = [prior for (_, name), prior in self.known.priors.items() if name == technique]
        if not priors:
            return NOTHING_KNOWN
        units = sum(log_units(prior.gain) for prior in priors)
        return units / len(priors), math.fsum(prior.confidence for prior in priors) / len(priors)


def figures_of(seen: Tally, prior_units: float, prior_confidence: float) -> Figures:
    """Figures from sums over attempts and a prior, its gain as a logarithm in units."""
    weight = seen.attempts + PRIOR_ATTEMPTS
    median = None
    if seen.low_median is not None and seen.high_median is not None:
        median = seen.low_median + (seen.high_median - seen.low_median) / 2
    return Figures(
        attempts=seen.attempts,
        faster=seen.faster,
        same=seen.same,
        slower=seen.slower,
        incorrect=seen.incorrect,
        not_compiled=seen.not_compiled,
        patch_failed=seen.patch_failed,
        success=seen.faster / seen.attempts if seen.attempts else None,
        mean_gain=_factor(seen.gain_units / seen.timed) if seen.timed else None,
        median_gain=median,
        predicted=_factor(seen.predicted_units / seen.predictions) if seen.predictions else None,
        confidence=(seen.faster + PRIOR_ATTEMPTS * prior_confidence) / weight,
        expected_gain=_factor((seen.gain_units + PRIOR_ATTEMPTS * prior_units) / weight),
        last_used=seen.last_used,
    )
