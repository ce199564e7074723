"""The process that has imported torch and forks an evaluator per request. One per engine; runs no candidate code.

It does no OpenMP work itself: a child forked after a thread pool exists would hang in its first parallel region.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import select
import socket
import sys
import time
import traceback
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from engine.evaluator.machine import processes
from engine.evaluator.processes import channel
from engine.evaluator.processes.channel import LineBroken
from engine.evaluator.sandbox import Isolation, OwnFailure
from engine.evaluator.sandbox.probe import probe

# What every evaluator needs, torch first, and what a worker could not import any more behind its walls.
NEEDED = (
    "torch",
    "torch.utils.cpp_extension",
    "torch.utils.flop_counter",
    "elftools.elf.elffile",
    "engine.evaluator.processes.process",
    "engine.evaluator.processes.compiled_start",
    "engine.evaluator.processes.compiler_source",
    "engine.evaluator.processes.alternatives",
)
MAX_ANSWER = 256 << 20
ASKED, GRANTED = b"?", b"!"


def main(engine: int, line: socket.socket) -> None:
    """Serve requests until the engine closes the line or ends."""
    processes.die_with_parent(engine)
    processes.adopt_orphans()
    gc.disable()  # what is imported stays: looking for garbage among it is a quarter of what importing costs
    for name in NEEDED:
        importlib.import_module(name)
    with suppress(LineBroken, BrokenPipeError, ConnectionResetError):
        began = time.monotonic()
        try:
            isolation = probe()
        except OwnFailure as error:
            channel.send_message(line, {"failed": str(error)})
            return
        channel.send_message(line, {"ready": sys.modules["torch"].__version__, "probing_s": time.monotonic() - began})
        while True:
            request = channel.receive_message(line)
            if channel.HAS_TURN in request:
                continue  # the evaluator that asked for it has ended
            answer = _judged(request, line, isolation)
            processes.end_descendants()
            if answer is None:
                return
            channel.send_message(line, answer)


def _judged(request: Mapping[str, Any], line: socket.socket, isolation: Isolation) -> dict[str, Any] | None:
    """An evaluator's answer; None when the engine went away meanwhile."""
    gc.freeze()  # else a child's first collection would touch, and so copy, every page of what has been imported
    _end_management()
    ours, theirs = socket.socketpair()
    with warnings.catch_warnings():
        # The other threads belong to libraries that were imported and wait; no lock of ours is held by any of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        ours.close()
        line.close()
        _be_evaluator(request, isolation, theirs)
    theirs.close()
    try:
        return _collected(ours, line, float(request["limit_s"]))
    finally:
        ours.close()
        processes.kill_tree(pid)


def _end_management() -> None:
    """Importing torch asks NVIDIA's management library for devices; its open files would be dead in a worker."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libnvidia-ml.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW).nvmlShutdown()


def _be_evaluator(request: Mapping[str, Any], isolation: Isolation, line: socket.socket) -> None:
    """Never returns."""
    from engine.evaluator.processes import process

    parent = os.getppid()
    os.environ.update(request.get("variables", {}))  # the device among them: nothing of CUDA has started here
    gc.enable()
    try:
        processes.die_with_parent(parent)
        text = json.dumps(process.answer(request, isolation, lambda: _take_turn(line))).encode()
    except BaseException:  # noqa: BLE001 - whatever broke must reach the engine as text; this process ends here
        text = json.dumps(
            {"failed": "toolchain", "message": f"the evaluator broke:\n{traceback.format_exc()}"}
        ).encode()
    line.sendall(text)
    os._exit(0)


def _take_turn(line: socket.socket) -> None:
    """Ask for the device and wait until it is ours. One line each way: the answer is what is sent last."""
    line.sendall(ASKED)
    if line.recv(1) != GRANTED:
        os._exit(1)


def _collected(evaluator: socket.socket, line: socket.socket, limit_s: float) -> dict[str, Any] | None:
    pieces: list[bytes] = []
    size = 0
    deadline = time.monotonic() + limit_s
    while True:
        ready, _, _ = select.select([evaluator, line], [], [], max(0.0, deadline - time.monotonic()))
        if line in ready:
            return None
        if not ready:
            return {"failed": "toolchain", "message": "the evaluator did not finish in time and was ended"}
        piece = _received(evaluator)
        if piece == ASKED and not pieces:
            channel.send_message(line, {channel.ASKS_TURN: True})
            channel.receive_message(line)
            with suppress(OSError):
                evaluator.sendall(GRANTED)
            deadline = time.monotonic() + limit_s
            continue
        size += len(piece)
        if not piece or size > MAX_ANSWER:
            break
        pieces.append(piece)
    try:
        answer = json.loads(b"".join(pieces))
    except ValueError:
        return {"failed": "toolchain", "message": "the evaluator was killed"}
    return answer if isinstance(answer, dict) else {"failed": "toolchain", "message": "the evaluator answered nonsense"}


def _received(evaluator: socket.socket) -> bytes:
    try:
        return evaluator.recv(1 << 20)
    except ConnectionResetError:
        return b""


if __name__ == "__main__":
    main(int(sys.argv[1]), socket.socket(fileno=int(sys.argv[2])))
    os._exit(0)  # nothing is left to tidy up, and Triton prints what it has not given back
