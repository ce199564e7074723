"""Which technique a step tries: drawn at random among those of largest predicted gain, by relevance. Pure.

Method: KernelBlaster's weighted selection (arXiv 2602.14293, its code: weight max(relevance³, 0.001)). The draw of a
step is seeded by run, trajectory and step, so that a run that goes on draws as it would have.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence

from storage.knowledge.records import Advised

LEAST_WEIGHT = 0.001


def top(found: Sequence[Advised], count: int, tried: Collection[str] = ()) -> list[Advised]:
    """Those of largest predicted gain; techniques tried on this very kernel only where nothing else is left."""
    ranked = sorted(found, key=lambda one: (-one.expected_gain, one.technique))
    return ([one for one in ranked if one.technique not in tried] or ranked)[:count]


def weights(chosen: Sequence[Advised], found: Sequence[Advised], relevance: Mapping[str, float]) -> list[float]:
    """The weight of each of the chosen, by the plan's relevance.

    Without one it is the predicted gain x confidence, scaled by the largest among all of the state (`found`).
    """
    largest = max((one.expected_gain * one.confidence for one in found), default=0.0)
    scaled = {one.technique: one.expected_gain * one.confidence / largest if largest > 0 else 0.0 for one in chosen}
    return [max(relevance.get(one.technique, scaled[one.technique]) ** 3, LEAST_WEIGHT) for one in chosen]


def draw(
    found: Sequence[Advised],
    relevance: Mapping[str, float],
    *,
    count: int,
    seed: str,
    place: tuple[int, int],
    tried: Collection[str] = (),
) -> Advised | None:
    """The technique of a step; None where none is known. `place`: trajectory and step."""
    chosen = top(found, count, tried)
    if not chosen:
        return None
    chance = random.Random(f"{seed}:{place[0]}:{place[1]}").random()
    weighed = weights(chosen, found, relevance)
    left = chance * sum(weighed)
    for one, weight in zip(chosen, weighed, strict=True):
        left -= weight
        if left < 0:
            return one
    return chosen[-1]
