"""Linux process calls the standard library lacks, and ending whole process trees. Knows no candidate."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int) -> None:
    """End this process when `parent` ends, also when it has ended already."""
    die_with(signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def die_with(number: signal.Signals) -> None:
    """Get this signal when the parent ends, whoever it is."""
    _prctl(_PR_SET_PDEATHSIG, number)


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


def descendants(pid: int) -> list[int]:
    """Every process below one, as far as it can be seen now."""
    tree = children(pid)
    for member in tree:
        tree += [child for child in children(member) if child not in tree]
    return tree


def resident(pids: Iterable[int]) -> int:
    """Bytes of memory that these processes hold and share with no file."""
    pages = 0
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError, ValueError):
            fields = Path(f"/proc/{pid}/statm").read_text().split()
            pages += int(fields[1]) - int(fields[2])
    return pages * os.sysconf("SC_PAGE_SIZE")


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
