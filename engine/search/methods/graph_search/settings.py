"""What can be set of the graph search. Knows words and limits, not what is done with them."""

from __future__ import annotations

from dataclasses import dataclass

from engine.search.methods.options import option, read_often
from storage.run.settings import RunSettings


@dataclass(frozen=True, slots=True)
class GraphSearchSettings:
    """Settings of the method. The run's own limits hold beside them."""

    expansions: int | None = option(
        None, "expansions of a run, each one technique at the end of a walk", label="Expansions", least=1,
        automatic="as many as the run's limits allow",
    )  # fmt: skip
    c: float = option(
        1.0, "weight of exploration: 0 always takes the edge of largest mean value, large values try every edge",
        label="Exploration c", least=0,
    )  # fmt: skip
    depth: int = option(4, "techniques on a walk at most, from the first kernel on", label="Depth of a walk", least=1)
    examples: int = option(
        1, "examples of an edge that the writer is shown, at most 2", label="Examples of an edge", least=0
    )
    outlines: int = option(
        2, "sequences of techniques that the model lays out at the start, to begin or to extend the graph",
        label="Sequences laid out", least=0,
    )  # fmt: skip
    max_repairs: int = option(3, "patches per generated kernel", label="Maximum repairs per kernel", least=0)
    first_tries: int = option(
        3, "first kernels that are written from nothing until one is correct", label="Maximum first kernels", least=1
    )
    seed: int | None = option(
        None, "seed of the draws between edges of equal score", label="Seed of the draws", automatic="each run its own"
    )


def settings_of(settings: RunSettings) -> GraphSearchSettings:
    """The graph search's part of a run's settings."""
    return read_often(GraphSearchSettings, settings.strategy_options)
