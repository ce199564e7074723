"""The engine's handle on the evaluator: starts the fork server, asks, restarts after a crash. Imports no torch."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from typing import Any

from engine.errors import TaskError, ToolchainError
from engine.evaluator import sandbox
from engine.evaluator.machine.stopwatch import Stopwatch
from engine.evaluator.machine.turns import Turn
from engine.evaluator.processes import channel
from engine.evaluator.processes.channel import LineBroken
from storage.results.timeline import Part

START_S = 120.0
GRACE_S = 30.0
REQUEST_FOLDER = "evaluation."  # how the name of a request's own folder begins
ROOT = Path(__file__).resolve().parent.parent.parent.parent
# A fork server ends with the thread that started it: for threads that do not last as long, this one starts it.
_STARTER = ThreadPoolExecutor(1, "starts evaluators")


class EvaluatorClient:
    """Asks one request at a time, its caller sees to that; only `interrupt` may come from another thread meanwhile."""

    def __init__(
        self, threads: int, variables: Mapping[str, str] | None = None, spent: Stopwatch | None = None
    ) -> None:
        """`variables` are set for its processes beside those of every one; `spent` learns where their time goes."""
        self._spent = spent or Stopwatch()
        self._threads = threads
        self._variables = dict(variables or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._is_greeted = False  # whether the fork server has said that it is there
        self._is_closing = False

    def ask(self, request: Mapping[str, object], limit_s: float, turn: Turn = nullcontext) -> Any:
        """The evaluator's result. `turn` is entered when the evaluator has prepared what needs no device, and left when
        it has answered; `limit_s` begins anew then, so that waiting for a turn costs nothing of it.

        Raises:
            TaskError: the reference cannot be judged against.
            ToolchainError: the evaluation processes cannot do their work.
        """
        answer = self._answer({**request, "limit_s": limit_s}, limit_s + GRACE_S, turn)
        if answer.get("failed") == "task":
            raise TaskError(str(answer.get("message")))
        if "failed" in answer:
            raise ToolchainError(str(answer.get("message")))
        self._spent.take(answer.get("spent", {}))
        return answer["result"]

    def begin(self) -> None:
        """Have the fork server started and wait for nothing: it imports PyTorch while the engine does other things."""
        if self._process is None:
            self._launch()

    def start(self) -> None:
        """Have the fork server ready, as a first request would; it uses no device.

        Raises:
            ToolchainError: it does not start.
        """
        self._ready()

    def interrupt(self) -> None:
        """Let a request in flight fail at once; `close` must follow."""
        self._is_closing = True
        if self._line is not None:
            with suppress(OSError):
                self._line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the fork server and everything below it."""
        self._drop()
        self._is_closing = False

    def _answer(self, request: Mapping[str, object], limit_s: float, turn: Turn) -> dict[str, Any]:
        """One retry with a new fork server: something may have killed the old one since the last request."""
        for _ in range(2):
            line = self._ready()
            with suppress(LineBroken, OSError), ExitStack() as unanswered:
                # Whose turn is not to be had waits for it: the next request would be taken for it.
                unanswered.callback(self._drop)
                answer = _exchange(line, {**request, "sent_at": time.monotonic()}, limit_s, turn)
                unanswered.pop_all()
                return answer
            if self._is_closing:
                raise ToolchainError("the toolchain was closed during an evaluation")
        raise ToolchainError(
            "the evaluation processes were killed twice on this candidate: was the machine out of memory? See dmesg"
        )

    def _ready(self) -> socket.socket:
        if self._process is None or self._process.poll() is not None:
            self._drop()
            self._launch()
        assert self._line is not None
        if not self._is_greeted:
            with self._spent.on(Part.STARTING):
                self._greet(self._line)
        return self._line

    def _launch(self) -> None:
        ours, theirs = socket.socketpair()
        environment = sandbox.environment(self._threads) | self._variables
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), environment["PYTHONPATH"]])
        command = [
            sys.executable,
            "-m",
            "engine.evaluator.processes.forkserver",
            str(os.getpid()),
            str(theirs.fileno()),
        ]

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], env=environment, start_new_session=True
            )

        self._line, self._is_greeted = ours, False
        is_lasting = threading.current_thread() is threading.main_thread()
        self._process = start() if is_lasting else _STARTER.submit(start).result()
        theirs.close()

    def _greet(self, line: socket.socket) -> None:
        began = time.monotonic()
        try:
            line.settimeout(START_S)
            message = channel.receive_message(line)
        except (LineBroken, OSError) as error:
            self._drop()
            raise ToolchainError(
                f"the evaluation process did not start: {error}. Is torch installed? See `python -m engine doctor`"
            ) from error
        if "failed" in message:
            self._drop()
            raise ToolchainError(str(message["failed"]))
        # It may have been there for long.
        self._spent.add(Part.PROBING, min(message["probing_s"], time.monotonic() - began))
        self._is_greeted = True

    def _drop(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None
        if self._process is not None:
            if self._is_greeted:  # one that still imports would first do so to its end
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(10)
            self._process.kill()
            self._process.wait()
            self._process = None


def _exchange(line: socket.socket, request: Mapping[str, object], limit_s: float, turn: Turn) -> dict[str, Any]:
    with ExitStack() as held:
        line.settimeout(limit_s)
        channel.send_message(line, request)
        message = channel.receive_message(line)
        if channel.ASKS_TURN in message:
            held.enter_context(turn())
            channel.send_message(line, {channel.HAS_TURN: True})
            message = channel.receive_message(line)
        return message
