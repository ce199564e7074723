"""The seam between engines and devices: an engine asks for an evaluation, the pool decides where and gives the result.

local.py        the devices of this host, each leased for as long as it is needed
pooled.py       a pool as what a run, a suite or a command asks
settling.py     on which device a run is timed
remote.py       workers on other hosts as a pool; on_ray.py: those of a Ray cluster; worker_side.py: what runs there
plain.py        evaluations and results as text
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Generic, Protocol

from engine.evaluator.machine import lease
from engine.evaluator.machine.turns import Share
from engine.evaluator.request import Request, Result

POOL, LOCAL = "TILEWRIGHT_POOL", "local"


def pool_name() -> str:
    """Where evaluations are done: `local`, or how a cluster is named."""
    return os.environ.get(POOL) or LOCAL


@dataclass(frozen=True, slots=True)
class Evaluation(Generic[Result]):
    """A request on its way to a device.

    `device` is where the run's timings are taken, by name: a request that is measuring must be answered there, another
    one may be; empty for any. `model` is the model of device that it must be, empty for any. `run_id` and `step` say
    who asks, for people, `share` on whose account.
    """

    request: Request[Result]
    toolchain: str
    model: str = ""
    device: str = ""
    run_id: str = ""
    step: int = 0
    share: Share = field(default_factory=Share)


class Pool(Protocol):
    """Devices that evaluate, wherever they are. Several threads may ask at once; each waits for its own result."""

    def evaluate(self, asked: Evaluation[Result]) -> Result:
        """What the toolchain answers, and its exceptions.

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
