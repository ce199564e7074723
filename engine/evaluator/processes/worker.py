"""The evaluator's handle on one child: ask it within a time limit, stop it, end it. Knows no question's meaning."""

from __future__ import annotations

import functools
import os
import secrets
import select
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.evaluator import sandbox
from engine.evaluator.checks.candidate_failures import Death, Ending, WorkerEnded
from engine.evaluator.machine.worker_limits import Limits
from engine.evaluator.processes import channel
from engine.evaluator.processes.channel import BadLine, Channel, ChannelClosed
from engine.evaluator.sandbox import ChildSpec, Isolation, SandboxedChild, SandboxFilesystem

KEPT_OUTPUT = 64 << 10
FLOOD = 64 << 20
WATCH_S = 0.2

Body = Callable[[Channel], None]
Reply = Callable[[Mapping[str, Any]], Mapping[str, object]]


class Worker:
    """A forked child that answers questions. `on_request` serves what the child asks for while it works."""

    def __init__(
        self, child: SandboxedChild, line: Channel, output: int, limits: Limits, on_request: Reply | None
    ) -> None:
        self._child = child
        self._line = line
        self._limits = limits
        self._output: int | None = output
        self._on_request = on_request
        self._kept = b""
        self._seen = 0
        self._is_ended = False
        self._halted: list[int] = []
        self.meanwhile: Callable[[], object] = lambda: None
        """Done now and then while the worker works for long."""

    @classmethod
    def fork(
        cls,
        body: Body,
        limits: Limits,
        folder: Path,
        keep: Iterable[int] = (),
        on_request: Reply | None = None,
        isolation: Isolation | None = None,
        readable: tuple[Path, ...] = (),
        writable: tuple[Path, ...] = (),
    ) -> Worker:
        """Start a child that runs `body` in a sandbox (without any: only limits), in `folder` where it has no
        file system of its own.

        Must be called before this process uses OpenMP.

        Raises:
            OwnFailure: the sandbox cannot be raised.
        """
        ours, theirs = channel.pair()
        read_output, write_output = os.pipe()
        os.set_blocking(read_output, False)
        isolation = isolation or Isolation()
        devices = tuple(map(Path, isolation.devices))
        filesystem = SandboxFilesystem(
            folder.with_name(f"{folder.name}.room"), readable, writable, limits.scratch, devices
        )
        kept = (theirs.read_from, theirs.write_to, *keep)
        spec = ChildSpec(isolation, filesystem, limits, folder, write_output, kept)
        child = sandbox.start(spec, lambda: _answer_until_closed(body, theirs))
        theirs.close()
        os.close(write_output)
        return cls(child, ours, read_output, limits, on_request)

    def ask(
        self, question: Mapping[str, object], limit_s: float, meanwhile: Callable[[], object] = lambda: None
    ) -> dict[str, Any]:
        """The answer to one question. `meanwhile` is done here while the worker is at work.

        Raises:
            WorkerEnded: no valid answer within the limit; the worker and all its children are dead then.
        """
        if self._line.has_surplus:
            raise self._end(Ending.MISBEHAVED, "it wrote to the evaluator without being asked")
        number = secrets.randbits(62)
        try:
            self._line.send({**question, "number": number})
            meanwhile()
            answer = self._wait(time.monotonic() + limit_s, limit_s)
        except ChannelClosed:
            raise self._end(Ending.DIED, "") from None
        except BadLine as error:
            raise self._end(Ending.MISBEHAVED, str(error)) from error
        if answer.pop("number", None) != number:
            raise self._end(Ending.MISBEHAVED, "it wrote to the evaluator without being asked")
        return answer

    def stop(self) -> None:
        """Halt every thread of the worker and everything it started, the worker itself first and at once."""
        inner = self.inner_pid
        _signal(inner, signal.SIGSTOP)
        self._halted = [inner, *(pid for pid in self._child.members() if pid != inner)]
        for pid in self._halted[1:]:
            _signal(pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let them run again. Looks nothing up: it is part of what a timed call costs."""
        for pid in self._halted:
            _signal(pid, signal.SIGCONT)

    @property
    def pid(self) -> int:
        """Process number of this process's own child, which holds the worker or is it."""
        return self._child.pid

    @functools.cached_property
    def inner_pid(self) -> int:
        """Process number of the worker itself, as this process sees it."""
        return self._child.inner_pid

    def members(self) -> list[int]:
        """The worker and everything it started."""
        return self._child.members()

    @property
    def output(self) -> str:
        """The first part of what it printed."""
        self._drain()
        return self._kept.decode(errors="replace")

    def end(self) -> None:
        """Kill it and everything it started."""
        if not self._is_ended:
            self._end(Ending.ENDED, "")

    def _wait(self, deadline: float, limit_s: float) -> dict[str, Any]:
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise self._end(Ending.TIMEOUT, f"no answer within {limit_s:.0f} s")
            watched = [self._line.read_from, *([] if self._output is None else [self._output])]
            ready, _, _ = select.select(watched, [], [], min(left, WATCH_S))
            if not ready:
                self._watch()
            self._drain()
            if self._line.read_from in ready:
                self._line.fill()
            while (message := self._line.take()) is not None:
                if "request" not in message:
                    return message
                paused = time.monotonic()
                self._line.send(self._serve(message["request"]))
                deadline += time.monotonic() - paused

    def _watch(self) -> None:
        """A worker that works for long is looked at: its limits bind each process, these all of them together."""
        self.meanwhile()
        members = self._child.members()
        if len(members) > self._limits.processes:
            raise self._end(Ending.MISBEHAVED, f"it started more than {self._limits.processes} processes")
        if self._child.memory() > self._limits.tree_memory:
            raise self._end(Ending.MEMORY, f"more than {self._limits.tree_memory / 2**30:.0f} GiB in all its processes")

    def _serve(self, request: Any) -> Mapping[str, object]:
        if self._on_request is None or not isinstance(request, dict):
            raise BadLine("it asked for something it may not have")
        return self._on_request(request)

    def _drain(self) -> None:
        """Keep the first part, drop the rest; a flood ends the worker."""
        if self._output is None:
            return
        with suppress(BlockingIOError):
            while piece := os.read(self._output, 1 << 16):
                self._kept += piece[: KEPT_OUTPUT - len(self._kept)]
                self._seen += len(piece)
                if self._seen > FLOOD and not self._is_ended:
                    raise self._end(Ending.MISBEHAVED, "it printed more than 64 MiB")
                if self._seen > 2 * FLOOD:
                    break
            os.close(self._output)
            self._output = None

    def _end(self, ending: Ending, detail: str) -> WorkerEnded:
        status = 0
        if not self._is_ended:
            self._is_ended = True
            status = self._reap(ending)
            self._line.close()
        return WorkerEnded(Death(ending, status, detail, self.output))

    def _reap(self, ending: Ending) -> int:
        """A worker that closed its pipe is about to die by its own doing: its real status is worth a moment."""
        grace = time.monotonic() + (1.0 if ending is Ending.DIED else 0.0)
        while not self._child.is_over() and time.monotonic() < grace:
            time.sleep(0.002)
        self._child.kill()
        return self._child.status


def _answer_until_closed(body: Body, line: Channel) -> None:
    with suppress(ChannelClosed):
        body(line)


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
