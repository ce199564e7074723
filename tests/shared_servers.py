"""Toolchains of one test process take turns on its fork servers: to start one is to import torch, over a second of
processor time, and dozens of tests open a toolchain of their own.

A toolchain that closes without a request in flight leaves its fork server to the next that asks for the same
environment; nothing of a request outlives it there, which tests of the evaluator and of cheats show. And one child
estimates the memory of all tasks: dozens of tests have a task of their own, and an evaluator that is asked for one
imports a second's worth of PyTorch for it. Tests that are about any of this ask for the fixture `own_server`.
"""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from engine.evaluator import fitting, sandbox
from engine.evaluator.machine.turns import Turn
from engine.evaluator.processes.client import EvaluatorClient
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.cpu import CpuToolchain

MOST_IDLE = 2
NAMES = ("ask", "interrupt", "close", "begin", "_ready")
Server = tuple[subprocess.Popen[bytes], socket.socket]
Needs = tuple[Any, ...]

_idle: dict[Needs, list[Server]] = {}
_ask, _interrupt, _close, _begin, _ready = (
    EvaluatorClient.ask,
    EvaluatorClient.interrupt,
    EvaluatorClient.close,
    EvaluatorClient.begin,
    EvaluatorClient._ready,
)
_asking: set[int] = set()
_estimate = CpuToolchain._estimate
_asked = fitting._asked
_started, _exit = fitting._started, fitting.CostMeter.__exit__
_children: list[subprocess.Popen[str]] = []  # that estimate, and that nobody uses
_meters: list[fitting.CostMeter] = []


def take_turns() -> None:
    """From here on, in this process."""
    for name, of_ours in zip(NAMES, (ask, interrupt, close, begin, ready), strict=True):
        setattr(EvaluatorClient, name, of_ours)
    setattr(CpuToolchain, "_estimate", estimate)  # noqa: B010 - it is a method
    fitting._asked = asked
    fitting._started = started
    setattr(fitting.CostMeter, "__exit__", leave)  # noqa: B010


def start_each() -> None:
    """As the product does, until `take_turns` again. Those that nobody uses meanwhile wait for then."""
    for name, of_theirs in zip(NAMES, (_ask, _interrupt, _close, _begin, _ready), strict=True):
        setattr(EvaluatorClient, name, of_theirs)
    setattr(CpuToolchain, "_estimate", _estimate)  # noqa: B010
    fitting._asked = _asked
    fitting._started = _started
    setattr(fitting.CostMeter, "__exit__", _exit)  # noqa: B010


def end_all() -> None:
    """End those that nobody uses."""
    for server in [one for idle in _idle.values() for one in idle]:
        _end(*server)
    _idle.clear()
    for meter in _meters:
        _exit(meter, None, None, None)
    _meters.clear()
    for child in _children:
        child.kill()
        child.communicate()
    _children.clear()


def meter() -> fitting.CostMeter:
    """The one whose child estimates for all tests."""
    if not _meters:
        _meters.append(fitting.CostMeter())
    return _meters[0]


def started() -> subprocess.Popen[str]:
    while _children:
        if (child := _children.pop()).poll() is None:
            return child
    return _started()


def leave(meter: fitting.CostMeter, *_: object) -> None:
    """One that broke has been ended by then; the others have answered all that they were asked."""
    if meter._child and len(_children) < MOST_IDLE:
        _children.append(meter._child)
        meter._child = None
    meter._end()


def estimate(toolchain: CpuToolchain, task: Task, **_: object) -> int | None:
    return asked(task.source, backward=task.policy.backward)


def asked(source: str, *, backward: bool) -> int | None:
    return fitting.bytes_by(meter(), source, backward=backward)


def ask(client: EvaluatorClient, request: Any, limit_s: float, turn: Turn = nullcontext) -> Any:
    _asking.add(id(client))
    try:
        return _ask(client, request, limit_s, turn)
    finally:
        _asking.discard(id(client))


def interrupt(client: EvaluatorClient) -> None:
    if id(client) in _asking:
        _interrupt(client)


def close(client: EvaluatorClient) -> None:
    process, line = client._process, client._line
    is_ready = client._is_greeted and not client._is_closing
    if process is None or line is None or not is_ready or process.poll() is not None:
        _close(client)
        return
    client._process = client._line = None
    idle = _idle.setdefault(needs_of(client), [])
    idle.append((process, line))
    if len(idle) > MOST_IDLE:
        _end(*idle.pop(0))


def begin(client: EvaluatorClient) -> None:
    _take_over(client)
    _begin(client)


def ready(client: EvaluatorClient) -> socket.socket:
    _take_over(client)
    return _ready(client)  # one that has died meanwhile is replaced


def _take_over(client: EvaluatorClient) -> None:
    if client._process is None and (idle := _idle.get(needs_of(client))):
        client._process, client._line = idle.pop()
        client._is_greeted = True


def needs_of(client: EvaluatorClient) -> Needs:
    """What one server must have in common with another to take its place."""
    variables = sandbox.environment(client._threads) | client._variables
    return tuple(sorted(variables.items())), tuple(sorted(os.sched_getaffinity(0))), Path.cwd()


def _end(process: subprocess.Popen[bytes], line: socket.socket) -> None:
    line.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(10)
    process.kill()
    process.wait()
