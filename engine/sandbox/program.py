"""Runs a trusted program on untrusted input, a compiler on a candidate's source, in a sandbox."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from engine.machine import processes
from engine.machine.worker_limits import Limits
from engine.sandbox.child import ChildSpec, SandboxedChild, start
from engine.sandbox.filesystem import SandboxFilesystem
from engine.sandbox.isolation import Isolation

FILE_SIZE = 512 << 20
UNLIMITED = 1 << 45
TICK_S = 0.002
WATCH_S = 0.25


@dataclass(frozen=True, slots=True)
class Done:
    """A finished command: exit status (negative for a signal), its bounded output, and whether a limit ended it."""

    status: int
    output: str
    is_timeout: bool = False
    is_memory: bool = False


def run(
    command: list[str],
    cwd: Path,
    limit_s: float,
    isolation: Isolation | None = None,
    readable: tuple[Path, ...] = (),
    max_output: int = 4_000_000,
) -> Done:
    """Run it in `cwd`, the one folder it may write to; its whole tree is ended at the limit.

    Raises:
        OwnFailure: the sandbox cannot be raised.
    """
    limits = Limits(processor_s=int(limit_s) * 4 + 60, file_size=FILE_SIZE)
    if isolation and isolation.devices:
        # A GPU's driver reserves address space for all memory of the machine; what is used is watched still.
        limits = replace(limits, address_space=UNLIMITED)
    environment = _environment(os.environ, cwd)

    def become() -> None:
        os.chdir(cwd)
        os.execve(command[0], command, environment)

    with tempfile.TemporaryFile() as output, tempfile.TemporaryDirectory(prefix="room.") as filesystem:
        isolation = isolation or Isolation()
        devices = tuple(map(Path, isolation.devices))
        shown = SandboxFilesystem(Path(filesystem), (Path(command[0]).parent, *readable), (cwd,), devices=devices)
        child = start(ChildSpec(isolation, shown, limits, cwd, output.fileno()), become)
        try:
            is_timeout, is_memory = _wait(child, limit_s, limits.tree_memory)
        finally:
            child.kill()
        output.seek(0)
        text = output.read(max_output).decode(errors="replace")
        return Done(child.status, text, is_timeout, is_memory)


def _wait(child: SandboxedChild, limit_s: float, memory: int) -> tuple[bool, bool]:
    """Whether time or memory ran out; polls, since the compiler's own processes are what must be watched."""
    deadline, watch = time.monotonic() + limit_s, time.monotonic() + WATCH_S
    while not child.is_over():
        now = time.monotonic()
        if now > deadline:
            return True, False
        if now > watch:
            watch = now + WATCH_S
            if processes.resident(child.members()) > memory:
                return False, True
        time.sleep(TICK_S)
    return False, False


def _environment(known: Mapping[str, str], folder: Path) -> dict[str, str]:
    """A compiler needs no malloc settings of ours, and its temporary files belong to the build folder."""
    return {
        **{k: v for k, v in known.items() if not k.startswith("MALLOC_")},
        "TMPDIR": str(folder),
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
    }
