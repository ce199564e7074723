"""The seam between engines and devices: an engine asks for an evaluation, the pool decides where and gives the result.

local.py        the devices of this host, each leased for as long as it is needed
pooled.py       a pool as the toolchain that a run, a suite or a command works with
settling.py     on which device a run is timed; accounts.py: on whose account
carrying_out.py one evaluation on a toolchain
remote.py       workers on other hosts as a pool; on_ray.py: those of a Ray cluster; worker_side.py: what runs there
plain.py        evaluations and results as text
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from engine.evaluator.machine import lease
from engine.evaluator.machine.turns import Share
from engine.evaluator.tasks import Task
from storage.results.evaluation_results import TimingResult

POOL, LOCAL = "TILEWRIGHT_POOL", "local"


def pool_name() -> str:
    """Where evaluations are done: `local`, or how a cluster is named."""
    return os.environ.get(POOL) or LOCAL


class Act(StrEnum):
    """What can be asked: the methods of a toolchain, under their names."""

    EXAMINE = "examine"
    EXAMINE_CONFINED = "examine_confined"
    LIMIT = "limit"
    COMPILE = "compile"
    COMPILE_ALL = "compile_all"
    CHECK = "check"
    TIME = "time"
    TIME_BRIEFLY = "time_briefly"
    COMPILED_BASELINE = "compiled_baseline"
    COMPILER_SOURCE = "compiler_source"
    COMPILED_START = "compiled_start"
    PROFILE = "profile"


# What is compared with other figures of the run, so that it is taken where they were; the rest may be done anywhere.
MEASURING = frozenset({Act.LIMIT, Act.TIME, Act.TIME_BRIEFLY, Act.COMPILED_BASELINE, Act.PROFILE})


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One thing asked of a pool, as values and texts alone: no path of this host is in it, so any host can do it.

    `device` is where the run's timings are taken, by name: of what is MEASURING it must be that one, else it is only
    preferred; empty for any. `model` is the model of device that it must be, empty for any. `run_id` and `step` say who
    asks, for people, `share` on whose account.
    """

    act: Act
    toolchain: str
    task: Task
    sources: tuple[str, ...] = ()
    timed: TimingResult | None = None
    model: str = ""
    device: str = ""
    run_id: str = ""
    step: int = 0
    share: Share = field(default_factory=Share)


class Pool(Protocol):
    """Devices that evaluate, wherever they are. Several threads may ask at once; each waits for its own result."""

    def evaluate(self, asked: Evaluation) -> Any:
        """What the toolchain's method of that name returns, and its exceptions.

        Raises:
            ToolchainError: no device can do it, or the last that could was taken out; the message says why.
        """
        ...

    def settle(self, toolchain: str, model: str = "", wanted: str = "", run_id: str = "", task: str = "") -> str:
        """The device on which a run that begins is to be timed: the one that is wanted while it can be used, else that
        which fewest runs have settled on, those of its `task` counted twice. Empty where there is nothing to choose.
        `run_id` is told to people."""
        ...

    def fingerprint(self, toolchain: str) -> str:
        """Changes with whatever can change a result, as of a toolchain."""
        ...

    def lease_files(self, toolchain: str, device: str) -> lease.Files:
        """What is locked while a device of this host is used; empty where nobody here can tell."""
        ...

    def close(self) -> None:
        """End what is at work, which raises ToolchainError in the threads that asked; twice does no harm."""
        ...
