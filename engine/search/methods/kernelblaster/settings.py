"""What can be set of KernelBlaster. Knows words and limits, not what is done with them."""

from __future__ import annotations

from dataclasses import dataclass

from engine.search.methods.options import Choice, option, read_often
from storage.run.settings import RunSettings

FULL, CYCLES, MINIMAL = "full", "cycles", "minimal"
AGENTS = (
    Choice(FULL, "profile, state and knowledge base"),
    Choice(CYCLES, "no profile: the model names the state from kernel and time"),
    Choice(MINIMAL, "no state and no base: the model chooses each change"),
)


@dataclass(frozen=True, slots=True)
class KernelBlasterSettings:
    """Settings of the method. The run's own limits hold beside them; that of steps counts those of all trajectories."""

    trajectories: int = option(
        2, "trajectories of a round, each from the first kernel; more than 8 bring little (the paper has 10)",
        label="Trajectories", least=1,
    )  # fmt: skip
    steps: int = option(
        3, "steps of a trajectory, each with one technique; more than 4 to 8 bring little (the paper has 10)",
        label="Steps per trajectory", least=1,
    )  # fmt: skip
    rounds: int = option(
        1, "rounds of trajectories, each with what the knowledge base has learned from the one before",
        label="Rounds", least=1,
    )  # fmt: skip
    top_k: int = option(
        4, "techniques of largest predicted gain among which a step's is drawn", label="Techniques to draw from",
        least=1,
    )  # fmt: skip
    seed: int | None = option(
        None, "seed of the draws: runs with the same seed and the same answers draw alike", label="Seed of the draws",
        automatic="each run its own",
    )  # fmt: skip
    max_repairs: int = option(3, "patches per generated kernel", label="Maximum repairs per kernel", least=0)
    first_tries: int = option(
        3, "first kernels that are written from nothing until one is correct", label="Maximum first kernels", least=1
    )
    verifies: bool = option(
        True, "the judge compares each correct kernel with the reference and flags work dropped, libraries, constants",
        label="Soft verification",
    )  # fmt: skip
    agent: str = option(
        FULL, "what a step is decided by; less than all of it is there for comparisons",
        label="Each step is decided by", choices=AGENTS,
    )  # fmt: skip
    learns: bool = option(
        True, "after each round the model says which expectations were wrong and corrects the knowledge base",
        label="Correct the knowledge base",
    )  # fmt: skip


def settings_of(settings: RunSettings) -> KernelBlasterSettings:
    """KernelBlaster's part of a run's settings."""
    return read_often(KernelBlasterSettings, settings.strategy_options)
