"""The server's side of judging: one call at a time in a process of its own, with progress, ended when it is cancelled.
Knows jobs, not what they do."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import anyio
import anyio.to_thread

from engine.errors import EngineError, ToolchainError
from engine.evaluator.machine import processes
from engine.evaluator.request import Evaluator
from engine.mcp_server import judge
from engine.mcp_server.budgets import Budget
from engine.mcp_server.judge import Done, Job, Phase

TELL_S, GRACE_S = 1.0, 5.0
WAITS = "waiting for another call of this server"
Tell = Callable[[float, str], Awaitable[None]]
"""Hears the seconds since the call and what is being done."""


class Bench:
    """Whoever judges for one server, and what that may spend."""

    def __init__(self, open_evaluator: Callable[[], Evaluator], budget: Budget, allowed_s: float) -> None:
        self.budget = budget
        self._open, self._allowed_s = open_evaluator, allowed_s
        self._turn = anyio.Lock()
        self._process: BaseProcess | None = None
        self._line: Connection | None = None

    async def do(self, tell: Tell, stage: Callable[..., Any], *arguments: Any) -> Any:
        """The result of a stage. A call that is cancelled ends the process that judges and all below it.

        Raises:
            EngineError: the task, the machine or the budget is at fault, not the kernel.
        """
        began = time.monotonic()
        await tell(0.0, WAITS if self._turn.locked() else "starting")
        async with self._turn:
            self.budget.see_that_there_is_time()
            job = Job(stage, arguments, self.budget.left.device_s, self._allowed_s)
            line = self._started()
            line.send(job)
            done = await self._followed(line, tell, began)
        if done.failure:
            raise EngineError(done.failure)
        return done.result

    async def _followed(self, line: Connection, tell: Tell, began: float) -> Done:
        """Pass on what is told until the job is done."""
        phase, since = Phase("starting", holds_device=False), time.monotonic()
        try:
            while True:
                with anyio.move_on_after(TELL_S):
                    await anyio.wait_readable(line.fileno())
                    match line.recv():
                        case Done() as done:
                            self.budget.spend(done.device_s)
                            return done
                        case Phase() as phase:
                            since = time.monotonic()
                await tell(time.monotonic() - began, phase.words)
        except (EOFError, ConnectionError) as error:
            await self._ended(phase, since)
            raise ToolchainError("the process that judges was killed: was the machine out of memory?") from error
        except BaseException:  # cancelled, or nobody listens any more
            await self._ended(phase, since)
            raise

    async def _ended(self, phase: Phase, since: float) -> None:
        self.budget.spend(time.monotonic() - since if phase.holds_device else 0.0)
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self.close)

    def _started(self) -> Connection:
        """The line to a process that judges, which is started where there is none."""
        if self._line is None or self._process is None or not self._process.is_alive():
            self.close()
            self._line, theirs = multiprocessing.Pipe()
            context = multiprocessing.get_context("spawn")
            self._process = context.Process(target=judge.serve, args=(theirs, self._open), daemon=False)
            self._process.start()
            theirs.close()
        return self._line

    def close(self) -> None:
        """End the process and everything below it; the next call starts another."""
        process, line, self._process, self._line = self._process, self._line, None, None
        if line is not None:
            line.close()
        if process is not None:
            process.terminate()
            process.join(GRACE_S)
            if process.is_alive() and process.pid is not None:
                processes.kill_tree(process.pid)
                process.join()
