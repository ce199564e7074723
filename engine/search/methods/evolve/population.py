"""Which kernels of a run are alive and which are drawn as parents. Pure: draws are seeded by run and step index, so
that a run that goes on draws as it would have."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parents:
    """The parents of one child; without `second` it is a mutation of `first`."""

    first: str
    second: str | None = None


def alive(line: Sequence[str], speedups: Mapping[str, float], size: int, keep: int) -> list[str]:
    """The population after these kernels were born in this order, fastest first.

    As soon as it has `size` kernels, the `keep` fastest of them stay, of equals the older ones. A kernel without a
    speed-up, such as one that was refused later, is not counted.
    """
    living = list[str]()
    for name in dict.fromkeys(line):
        if name in speedups:
            living.append(name)
        if len(living) >= size:
            living = _fastest(living, speedups)[:keep]
    return _fastest(living, speedups)


def _fastest(names: Sequence[str], speedups: Mapping[str, float]) -> list[str]:
    return sorted(names, key=lambda name: -speedups[name])


def draw_parents(
    population: Sequence[str], speedups: Mapping[str, float], *, seed: str, index: int, crossover: float
) -> Parents:
    """The parents of the child at a step index: each with a probability in proportion to its speed-up; two different
    ones with the probability `crossover`, where there are two. `population` is not empty."""
    first = _draw(population, speedups, f"{seed}:{index}:first")
    wants_two = random.Random(f"{seed}:{index}:two").random() < crossover
    second = draw_second(population, speedups, first, seed=seed, index=index) if wants_two else None
    return Parents(first, second)


def draw_second(
    population: Sequence[str], speedups: Mapping[str, float], first: str, *, seed: str, index: int
) -> str | None:
    """The other parent of a crossover; None where nobody else is alive."""
    others = [name for name in population if name != first]
    return _draw(others, speedups, f"{seed}:{index}:second") if others else None


def _draw(names: Sequence[str], speedups: Mapping[str, float], seed: str) -> str:
    return random.Random(seed).choices(names, [speedups[name] for name in names])[0]
