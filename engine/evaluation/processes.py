"""Linux process calls the standard library lacks, and ending whole process trees. Knows no candidate."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int) -> None:
    """End this process when `parent` ends, also when it has ended already."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that none can slip away."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def children(pid: int) -> list[int]:
    """Direct children of every thread of a process; empty when it is gone."""
    found: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                found += map(int, (task / "children").read_text().split())
    return found


def kill_tree(pid: int) -> None:
    """Stop, then kill a process and its descendants. Stopping first keeps a fork storm from outrunning the walk."""
    tree = [pid]
    for member in tree:
        _send(member, signal.SIGSTOP)
        tree += [child for child in children(member) if child not in tree]
    for member in tree:
        _send(member, signal.SIGKILL)


def end_descendants(limit_s: float = 10.0) -> bool:
    """Kill and reap everything below this process; false when something survives the limit."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        for child in children(os.getpid()):
            kill_tree(child)
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid == 0:
            time.sleep(0.002)
    return False


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl failed")
