"""What an attempt has brought: its gain, its reward, and what was predicted against what was measured. Pure.

Method: the reward of KernelBlaster's code. A gain here is the share of the parent's time that was saved, 1 minus the
child's time over the parent's; everywhere else a gain is the factor between both times.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from storage.results.relative import Relative

WITHIN, BONUS, PENALTY, MOST_RATIO, NOT_FASTER = (0.8, 1.2), 0.2, 0.1, 2.0, 0.5
WORST_GAIN = -5.0


def saved(factor: float) -> float:
    """The share of the time that a factor saves; below zero where it is slower."""
    return 1 - 1 / factor


def reward(factor: float | None, predicted: float | None, *, is_faster: bool) -> float:
    """The reward of an attempt from the factors over the parent, measured (None: it failed) and predicted.

    The gain; +0.2 when measured over predicted gain, r, lies in [0.8, 1.2], else -0.1 x |min(r, 2) - 1|; -0.5 when it
    is not faster beyond the noise. Without a predicted gain above zero there is no r, and a failed attempt has neither
    r nor a gain.
    """
    total = 0.0 if is_faster else -NOT_FASTER
    if factor is None:
        return total
    gain, expected = saved(factor), saved(predicted) if predicted else 0.0
    if expected > 0:
        ratio = gain / expected
        is_near = WITHIN[0] <= ratio <= WITHIN[1]
        total += BONUS if is_near else -PENALTY * abs(min(ratio, MOST_RATIO) - 1)
    return total + gain


@dataclass(frozen=True, slots=True)
class Attempt:
    """One step of a trajectory: a technique on a parent kernel. `measured` is None where it failed."""

    trajectory: int
    step: int
    state: str
    technique: str
    parent_id: str
    candidate_id: str | None
    predicted: float | None
    measured: Relative | None

    @property
    def reward(self) -> float:
        """What it has brought."""
        factor = self.measured.speedup if self.measured else None
        return reward(factor, self.predicted, is_faster=self.measured is not None and self.measured.is_faster)

    @property
    def ends_trajectory(self) -> bool:
        """Whether it is so much slower that its trajectory is not worth going on with."""
        return self.measured is not None and saved(self.measured.speedup) < WORST_GAIN

    def __str__(self) -> str:
        expected = f"predicted {self.predicted:.3g}x" if self.predicted else "nothing predicted"
        if self.measured is None:
            return f"{expected}, failed, reward {self.reward:+.2f}"
        m = self.measured
        verdict = "faster" if m.is_faster else "slower" if m.is_slower else "within the noise"
        return (
            f"{expected}, measured {m.speedup:.3g}x ({m.low:.3g} to {m.high:.3g}), {verdict}, reward {self.reward:+.2f}"
        )


def evaluation(attempts: Sequence[Attempt]) -> Iterator[str]:
    """Predicted against measured, by state, as lines: the policy evaluation of a round."""
    for state in dict.fromkeys(attempt.state for attempt in attempts):
        group = [attempt for attempt in attempts if attempt.state == state]
        both = [
            (attempt.predicted, attempt.measured.speedup) for attempt in group if attempt.predicted and attempt.measured
        ]
        line = (
            f"predicted {_mean([p for p, _ in both]):.3g}x and measured {_mean([m for _, m in both]):.3g}x on average "
            f"of {len(both)}"
            if both
            else "no pair of a prediction and a measurement"
        )
        failed = sum(attempt.measured is None for attempt in group)
        total = sum(attempt.reward for attempt in group) / len(group)
        lead = f"{state or '(state not known)'}: {len(group)} attempts, {failed} failed"
        yield f"{lead}; {line}; mean reward {total:+.2f}"
        for attempt in group:
            yield f"- {attempt.technique} (trajectory {attempt.trajectory}, step {attempt.step}): {attempt}"


def _mean(factors: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, factors)) / len(factors))
