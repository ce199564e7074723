"""Which technique a step tries: drawn at random among those of largest predicted gain, by relevance. Pure.

Method: KernelBlaster's weighted selection (arXiv 2602.14293, its code: weight max(relevance³, 0.001)). The draw of a
step is seeded by run, trajectory and step, so that a run that goes on draws as it would have.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence

from storage.knowledge.records import Advised

LEAST_WEIGHT = 0.001


def top(advised: Sequence[Advised], count: int, tried: Collection[str] = ()) -> list[Advised]:
    """The techniques of largest predicted gain; those tried on this very kernel only where nothing else is left."""
    ranked = sorted(advised, key=lambda advice: (-advice.expected_gain, advice.technique))
    return ([advice for advice in ranked if advice.technique not in tried] or ranked)[:count]


def weights(chosen: Sequence[Advised], advised: Sequence[Advised], relevance: Mapping[str, float]) -> list[float]:
    """The weight of each of the chosen, by the plan's relevance.

    Without one it is the predicted gain x confidence, scaled by the largest among all of the state (`advised`).
    """
    largest = max((advice.expected_gain * advice.confidence for advice in advised), default=0.0)
    scaled = {
        advice.technique: advice.expected_gain * advice.confidence / largest if largest > 0 else 0.0
        for advice in chosen
    }
    return [max(relevance.get(advice.technique, scaled[advice.technique]) ** 3, LEAST_WEIGHT) for advice in chosen]


def draw(
    advised: Sequence[Advised],
    relevance: Mapping[str, float],
    *,
    count: int,
    seed: str,
    place: tuple[int, int],
    tried: Collection[str] = (),
) -> Advised | None:
    """The technique of a step; None where none is known. `place`: trajectory and step."""
    chosen = top(advised, count, tried)
    if not chosen:
        return None
    chance = random.Random(f"{seed}:{place[0]}:{place[1]}").random()
    weighed = weights(chosen, advised, relevance)
    left = chance * sum(weighed)
    for advice, weight in zip(chosen, weighed, strict=True):
        left -= weight
        if left < 0:
            return advice
    return chosen[-1]
