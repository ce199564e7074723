"""The process that judges for a server: it asks the evaluator, and whoever cancels a call ends it with all that is
below it and the device's lease. Knows no protocol of agents."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from engine.errors import EngineError
from engine.evaluator.machine import lease, processes
from engine.evaluator.request import Compile, CompileAll, Evaluator, Request, Result
from engine.mcp_server.budgets import no_time
from engine.mcp_server.stages import Say
from storage.device_use import WORDS


@dataclass(frozen=True, slots=True)
class Job:
    """`stage` is a function of `stages`, called with the evaluator, what hears words about progress, and `arguments`.
    The device may be held for `left_s` of the server's `allowed_s` seconds."""

    stage: Callable[..., Any]
    arguments: tuple[Any, ...]
    left_s: float
    allowed_s: float


@dataclass(frozen=True, slots=True)
class Phase:
    """What is being done, in words; `holds_device` where its time counts if it is broken off."""

    words: str
    holds_device: bool


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a job: a result, or our own failure in words. The device was held for `device_s`."""

    result: Any
    failure: str
    device_s: float


class Metered(Evaluator):
    """Tells each request before it is asked, and counts how long the device was held."""

    def __init__(self, inner: Evaluator, job: Job, tell: Callable[[Phase], None]) -> None:
        self.name, self.device_s = inner.name, 0.0
        self._inner, self._job, self._tell = inner, job, tell

    @property
    def fingerprint(self) -> str:
        """That of the inner one."""
        return self._inner.fingerprint

    @property
    def lease_files(self) -> lease.Files:
        """The lock files of the inner evaluator."""
        return self._inner.lease_files

    def evaluate(self, request: Request[Result]) -> Result:
        """The inner one's answer.

        Raises:
            EngineError: the time of the device is used up.
        """
        if self.device_s >= self._job.left_s:
            raise EngineError(no_time(self._job.allowed_s))
        needs_device = not isinstance(request, Compile | CompileAll)
        self._tell(Phase(WORDS.get(request.act, request.act), needs_device))
        began, held_s = time.monotonic(), None
        try:
            result = self._inner.evaluate(request)
            held_s = _held_s(result)
            return result
        finally:
            elapsed_s = time.monotonic() - began if needs_device else 0.0
            self.device_s += elapsed_s if held_s is None else held_s

    def close(self) -> None:
        """End the inner one's children."""
        self._inner.close()


def _held_s(result: Any) -> float | None:
    """As the result says; a remembered one took nothing. None where such a result does not tell."""
    if not hasattr(result, "timeline"):
        return None
    return result.timeline.lease_s if result.timeline else 0.0


def serve(line: Connection, open_evaluator: Callable[[], Evaluator]) -> None:
    """Do one job after the other until nobody asks any more, or SIGTERM."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the server ends its judge
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    processes.die_with(signal.SIGTERM)  # of the server, however it ends
    evaluator: Evaluator | None = None
    try:
        while True:
            job: Job = line.recv()
            evaluator = evaluator or open_evaluator()
            line.send(_done(job, Metered(evaluator, job, line.send), lambda words: line.send(Phase(words, True))))
    except (EOFError, BrokenPipeError):
        pass  # the server is gone
    finally:
        if evaluator is not None:
            evaluator.close()


def _done(job: Job, metered: Metered, say: Say) -> Done:
    try:
        return Done(job.stage(metered, say, *job.arguments), "", metered.device_s)
    except EngineError as error:
        return Done(None, str(error), metered.device_s)
