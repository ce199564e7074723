"""Linux process calls the standard library lacks, ending whole process trees, and what a process's threads and children
do as the kernel tells: states, processor time, places. Knows no candidate."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
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
    return [int(child) for text in _read(pid, "children") for child in text.split()]


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
    times_ns: dict[int, int] = {}
    for thread in _threads(pid):
        with suppress(FileNotFoundError, ProcessLookupError):
            times_ns[thread] = int(_text(f"/proc/{pid}/task/{thread}/schedstat").split()[0])
    return times_ns


def total_ns(pid: int) -> int:
    """Processor time of a process, of threads that have ended too: by its clock (clock_getcpuclockid)."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def waited_ns(pid: int) -> int:
    """Time the living threads were ready to run and had no processor."""
    return sum(int(words.split()[1]) for words in _read(pid, "schedstat"))


def thread_count(pid: int) -> int:
    """Number of threads."""
    return sum(1 for _ in _read(pid, "schedstat"))


def spread(pid: int) -> dict[int, set[int]]:
    """Let the threads of a halted process wake on processors of their own; returns where each was allowed before.

    Woken together they may land on one processor and stay there for a whole session, which then measures half a team.
    """
    places: dict[int, set[int]] = {}
    processors = sorted(os.sched_getaffinity(0))
    for number, thread in enumerate(sorted(_threads(pid))):
        with suppress(OSError):
            places[thread] = os.sched_getaffinity(thread)
            os.sched_setaffinity(thread, {processors[number % len(processors)]})
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
            yield _text(f"/proc/{pid}/task/{thread}/{name}")


def _text(path: str) -> str:
    """A file of the kernel's, by the calls themselves: a timing reads dozens before and after each call, and a path
    and a file of Python's cost several times what reading does."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return b"".join(iter(lambda: os.read(file, 1 << 16), b"")).decode(errors="replace")
    finally:
        os.close(file)


def _threads(pid: int) -> list[int]:
    with suppress(FileNotFoundError, ProcessLookupError), os.scandir(f"/proc/{pid}/task") as entries:
        return [int(entry.name) for entry in entries]
    return []


def _state(stat: str) -> str:
    return stat.rpartition(")")[2].split()[0]
