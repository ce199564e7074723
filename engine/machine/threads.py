"""What a process's threads and children do, as the kernel tells: states, processor time, places. Signals nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

HALT_S = 5.0
HALTED = "TtZX"


class NotHalted(Exception):
    """A process that was told to stop runs on."""


def wait_until_halted(pid: int, limit_s: float = HALT_S) -> None:
    """Return when every thread has come to its stop: the signal is only a request.

    Raises:
        NotHalted: one runs on after the limit.
    """
    deadline = time.monotonic() + limit_s
    while not all(_state(words) in HALTED for words in _read(pid, "stat")):
        if time.monotonic() > deadline:
            raise NotHalted(f"process {pid} did not stop within {limit_s:.0f} s")
        os.sched_yield()


def processor_ns(pid: int) -> int:
    """Processor time of all threads that still live."""
    return sum(int(words.split()[0]) for words in _read(pid, "schedstat"))


def each_ns(pid: int) -> dict[int, int]:
    """Processor time of each living thread."""
    found: dict[int, int] = {}
    for thread in _threads(pid):
        with suppress(FileNotFoundError, ProcessLookupError):
            found[thread] = int(Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()[0])
    return found


def total_ns(pid: int) -> int:
    """Processor time of a process, of threads that have ended too: by its clock (clock_getcpuclockid)."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def waited_ns(pid: int) -> int:
    """Time the living threads were ready to run and had no processor."""
    return sum(int(words.split()[1]) for words in _read(pid, "schedstat"))


def count(pid: int) -> int:
    """Number of threads."""
    return sum(1 for _ in _read(pid, "schedstat"))


def spread(pid: int) -> dict[int, set[int]]:
    """Let the threads of a halted process wake on processors of their own; returns where each was allowed before.

    Woken together they may land on one processor and stay there for a whole session, which then measures half a team.
    """
    places: dict[int, set[int]] = {}
    mine = sorted(os.sched_getaffinity(0))
    for number, thread in enumerate(sorted(_threads(pid))):
        with suppress(OSError):
            places[thread] = os.sched_getaffinity(thread)
            os.sched_setaffinity(thread, {mine[number % len(mine)]})
    return places


def release(places: Mapping[int, set[int]]) -> None:
    """Let threads go where they like again; a thread that runs stays where it is, and one it starts is free."""
    for thread, allowed in places.items():
        with suppress(OSError):
            os.sched_setaffinity(thread, allowed)


def running_name(pid: int) -> str:
    """What the kernel calls a process; empty for one that has ended and only waits to be reaped."""
    with suppress(FileNotFoundError, ProcessLookupError):
        stat = Path(f"/proc/{pid}/stat").read_text()
        return "" if _state(stat) in "ZX" else stat.partition("(")[2].rpartition(")")[0]
    return ""


def _read(pid: int, name: str) -> Iterator[str]:
    """One file of every thread; a thread that ends meanwhile is left out."""
    for thread in _threads(pid):
        with suppress(FileNotFoundError, ProcessLookupError):
            yield Path(f"/proc/{pid}/task/{thread}/{name}").read_text(errors="replace")


def _threads(pid: int) -> list[int]:
    with suppress(FileNotFoundError, ProcessLookupError):
        return [int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir()]
    return []


def _state(stat: str) -> str:
    return stat.rpartition(")")[2].split()[0]
