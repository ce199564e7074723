"""The vocabulary of suites: definition, cells and events. Knows no file and no run folder."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

from storage.knowledge.choice import OFF

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


class CellState(StrEnum):
    """Where a cell stands. FINISHED is never run again; a resumed suite goes on with all others."""

    PLANNED = "planned"
    RUNNING = "running"
    WAITING = "waiting"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"


class BudgetRule(StrEnum):
    """What becomes of what is left of the suite's limits once every cell has had the steps of its settings: nothing, or
    more steps where they are expected to save most."""

    EVEN = "even"
    HEADROOM = "headroom"


class Purpose(StrEnum):
    """What a suite finds out: how fast kernels are, or whether every cell makes a correct, timed one."""

    SPEED = "speed"
    WORKS = "works"


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One run of the suite. `repeat` counts from 1."""

    task: str
    arm: str
    repeat: int

    @property
    def words(self) -> str:
        """For people."""
        return f"{self.task}, {self.arm}, repeat {self.repeat}"


@dataclass(frozen=True, slots=True)
class SuiteTask:
    """A task of a suite. `name` is its own in the suite, `task` what `engine run` takes: a shipped name or a path.

    `settings` are words of `engine run` for this task alone. `kernel_class` is the class it is counted under where
    that is not the task's own; `paper` is the speed-up over eager that the paper reports, None where it reports none.
    `time_share` is the share of the total time that the task has in what it is taken from, None where nobody says.
    """

    name: str
    task: str
    settings: str = ""
    kernel_class: str = ""
    paper: float | None = None
    time_share: float | None = None


@dataclass(frozen=True, slots=True)
class Arm:
    """One set of settings, as the words that `engine run` takes.

    An arm that `is_adopted` was made of runs that were there before; its words are known of a shipped example alone.
    With `in_order` the arm's tasks are worked so many at a time, and the next ones begin when these have ended; 0: in
    any order.
    """

    name: str
    settings: str = ""
    is_adopted: bool = False
    in_order: int = 0


@dataclass(frozen=True, slots=True)
class SuiteLimits:
    """Limits of all cells together; None means no limit. `engine_s` is the time that engines worked, in seconds."""

    model_calls: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    engine_s: float | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """What runs have spent. `cost_usd` is None once the price of any call is unknown."""

    model_calls: int = 0
    tokens: int = 0
    cost_usd: float | None = 0.0
    engine_s: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        is_cost_known = self.cost_usd is not None and other.cost_usd is not None
        return Spent(
            self.model_calls + other.model_calls, self.tokens + other.tokens,
            (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if is_cost_known else None, self.engine_s + other.engine_s,
        )  # fmt: skip

    def over(self, limits: SuiteLimits) -> str:
        """Which limit is reached, in words; empty while none is."""
        checks = (
            ("model calls", self.model_calls, limits.model_calls),
            ("tokens", self.tokens, limits.tokens),
            ("US dollars", self.cost_usd or 0.0, limits.cost_usd),
            ("seconds of engine time", self.engine_s, limits.engine_s),
        )
        for name, used, limit in checks:
            if limit is not None and used >= limit:
                return f"the suite's limit of {limit:g} {name} is reached ({used:g} used)"
        return ""


@dataclass(frozen=True, slots=True)
class Defined:
    """What the suite is from here on: its TOML file as `toml`, and what was made of it. The last one counts.

    `settings` are words of `engine run` for every cell. `words` are what was said beside the file's name. `weight` is
    the share of devices that all its cells have together. `more_steps` a cell gets at a time of what is left of the
    limits, where `budget` gives any, and none that are expected to save less than `least_saving` of the total time.
    """

    name: str
    tasks: tuple[SuiteTask, ...]
    arms: tuple[Arm, ...]
    repeats: int = 1
    title: str = ""
    about: str = ""
    settings: str = ""
    baseline_arm: str = ""
    limits: SuiteLimits = field(default_factory=SuiteLimits)
    toml: str = ""
    words: tuple[str, ...] = ()
    weight: float = 1.0
    budget: BudgetRule = BudgetRule.EVEN
    more_steps: int = 2
    least_saving: float = 0.0
    checks: Purpose = Purpose.SPEED
    is_example: bool = False
    """A suite of runs that came with Tilewright: it was made elsewhere, and stays as it is."""

    @property
    def cells(self) -> list[Cell]:
        """Every cell in the order of the queue: a repeat of all tasks and arms before the next one."""
        return [
            Cell(task.name, arm.name, repeat)
            for repeat in range(1, self.repeats + 1)
            for task in self.tasks
            for arm in self.arms
        ]

    def twin(self, arm: str) -> str:
        """The arm that differs from this one in asking no knowledge base alone; empty for none."""
        words = {known.name: _without_knowledge(known.settings) for known in self.arms}
        rest, asks = words.get(arm, ([], False))
        plain = [name for name, (other, knows) in words.items() if asks and not knows and other == rest]
        return plain[0] if plain else ""


def _without_knowledge(settings: str) -> tuple[list[str], bool]:
    """An arm's words but those for its knowledge base, and whether it asks one."""
    words = settings.replace("--knowledge=", "--knowledge ").split()
    bases = [after for word, after in pairwise([*words, ""]) if word == "--knowledge"]
    rest = [word for before, word in pairwise(["", *words]) if "--knowledge" not in (before, word)]
    return rest, bool(bases) and bases[-1] != OFF


@dataclass(frozen=True, slots=True)
class RunnerStarted:
    """A runner works on the queue; `slots` are places for runs at a time: devices, numbers, or one empty name."""

    pid: int
    slots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunnerEnded:
    """No runner works on it any more."""

    reason: str


@dataclass(frozen=True, slots=True)
class StopAsked:
    """A person wants the runner and its engines to end in order."""

    by: str = ""


@dataclass(frozen=True, slots=True)
class CellLinked:
    """A runner takes up a cell with this run. Written before the run's folder is made, so that no cell ever has two."""

    cell: Cell
    run_id: str


@dataclass(frozen=True, slots=True)
class CellLeft:
    """The runner has let go of a cell: finished, or stopped, failed or waiting for a person."""

    cell: Cell
    run_id: str
    state: CellState
    reason: str = ""
    spent: Spent = field(default_factory=Spent)


@dataclass(frozen=True, slots=True)
class Weighed:
    """What further steps were expected to save a cell when it was decided who gets them, and `why`, for people.

    `steps` were given, so that its run may go to `depths`; 0: it got none. `saving` is a share of its kernel's time, or
    of the total time where the suite says what each task has of it. `left` is what the hardware limit leaves of its
    time, None where that is not known. Of `tries` of others `gained` were faster.
    """

    cell: Cell
    run_id: str
    why: str = ""
    steps: int = 0
    depths: int = 0
    saving: float = 0.0
    left: float | None = None
    tries: int = 0
    gained: int = 0

    @property
    def limits(self) -> str:
        """What the run is given, as the command for its limits takes it."""
        return f"depths={self.depths}"


@dataclass(frozen=True, slots=True)
class JudgedAgain:
    """A cell's best kernel was judged once more, from a manifest. `speedup` and `noise` are None unless it was timed.

    `verdict` is a Verdict value, `device` where that was. `differs` says what is not as the manifest has it.
    """

    cell: Cell
    run_id: str
    candidate_id: str
    device: str
    verdict: str
    speedup: float | None = None
    noise: float | None = None
    differs: tuple[str, ...] = ()


Event = Defined | RunnerStarted | RunnerEnded | StopAsked | CellLinked | CellLeft | Weighed | JudgedAgain
