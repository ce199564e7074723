"""How busy the machine is, and the little that can be done about it before a timing. Knows no candidate."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

WINDOW_S = 0.2
BUSY = 0.15
PRIORITY = -10
LIMIT_S = 3.0
BESIDE_A_DEVICE = 4
"""Processors that a timing on a GPU needs: its three processes, and one for the driver's threads."""


def wait(limit_s: float = LIMIT_S, needs: int | None = None) -> float:
    """Wait for a quiet moment, not longer than the limit and three seconds; returns the share of the processors that
    others used last. Who measures for less than that waits for no longer than it measures. Who `needs` only so many
    processors waits until as many are idle."""
    deadline = time.monotonic() + min(limit_s, LIMIT_S)
    allowed = BUSY if needs is None else max(BUSY, 1 - needs / (os.cpu_count() or 1))
    while True:
        share = _busy_share()
        if share < allowed or time.monotonic() > deadline:
            return share


def raise_priority() -> bool:
    """Let this process and its future children go first where the system permits that; true when it did.

    It gets a session of its own, so that what else its parent starts stays as it was.
    """
    with suppress(PermissionError):
        os.setsid()
    raise_session(os.getpid())
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)
        return True
    return False


def raise_session(pid: int) -> bool:
    """Let the session a process belongs to go first; true when the system permits it.

    Linux shares processors among sessions before it looks at the priorities inside each of them (sched_autogroup): a
    worker has a session of its own, and its priority alone would count for nothing.
    """
    with suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(PRIORITY))
        return True
    return False


def raise_process(pid: int) -> None:
    """Let another process of this user go first, with the threads that it has and those that it starts."""
    raise_session(pid)
    for thread in _threads(pid):
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, PRIORITY)


def go_before_all(*pids: int) -> bool:
    """Let this process and others run whenever they can, whatever else wants to; true when the system permits it.

    All at one priority: who waits for a thread to stop would keep it from a processor else. The kernel leaves a
    twentieth of each second to everybody else.
    """
    lowest = os.sched_param(os.sched_get_priority_min(os.SCHED_RR))
    try:
        for thread in (0, *(thread for pid in pids for thread in _threads(pid))):
            with suppress(ProcessLookupError):
                os.sched_setscheduler(thread, os.SCHED_RR, lowest)
    except OSError:
        return False
    return True


def _threads(pid: int) -> list[int]:
    return [int(thread.name) for thread in Path(f"/proc/{pid}/task").glob("*")]


def _busy_share() -> float:
    before = _ticks()
    time.sleep(WINDOW_S)
    after = _ticks()
    total = sum(after) - sum(before)
    idle = sum(after[3:5]) - sum(before[3:5])
    return 1.0 - idle / total if total else 0.0


def _ticks() -> list[int]:
    return [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
