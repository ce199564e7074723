"""Samples of real processes, taken from outside: every thread, whatever it starts, and the memory that it maps."""

from __future__ import annotations

import ctypes.util
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.evaluator.machine import samples
from engine.evaluator.machine.samples import NotPermitted, Region, Sampling, Taken

BUSY = "import time\nend = time.monotonic() + 0.3\nwhile time.monotonic() < end: pass\n"
THREADS = """
import threading
for _ in range(2):
    one = threading.Thread(target=lambda: exec(%r))
    one.start()
    one.join()
"""
MAPS = "from mmap import *\nroom = mmap(-1, 4096, MAP_PRIVATE | MAP_ANONYMOUS, PROT_READ | PROT_WRITE | PROT_EXEC)\n"
CHANGES = """
import ctypes
libc = ctypes.CDLL(None)
page = ctypes.cast(libc.qsort, ctypes.c_void_p).value & ~4095
assert libc.mprotect(ctypes.c_void_p(page), 4096, 7) == 0
ctypes.memset(page, ctypes.string_at(page, 1)[0], 1)
assert libc.mprotect(ctypes.c_void_p(page), 4096, 5) == 0
"""


@contextmanager
def waiting(program: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs a program when it is told, and waits at its end."""
    told = f"print(flush=True)\ninput()\n{program}\nprint(flush=True)\ninput()\n"
    with subprocess.Popen([sys.executable, "-c", told], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield child
        child.kill()


def go(child: subprocess.Popen[bytes]) -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(b"\n")
    child.stdin.flush()
    child.stdout.readline()


def sampled(program: str) -> tuple[int, Taken, list[Region], set[int]]:
    """Process, samples, executable memory, and where that was altered, at the end of a program."""
    with waiting(program) as child:
        sampling = Sampling(child.pid)
        sampling.start()
        go(child)
        taken = sampling.take()
        assert sampling.take().samples == ()
        sampling.close()
        return child.pid, taken, samples.executable(child.pid), samples.altered(child.pid)


def test_a_busy_process_is_where_its_code_is() -> None:
    began = time.perf_counter_ns()
    _, taken, regions, altered = sampled(BUSY)
    assert len(taken.samples) > 50
    assert all(began < at < time.perf_counter_ns() for _, _, at in taken.samples)
    found = Counter(
        next((one.path for one in regions if one.begin <= address < one.end), "") for _, address, _ in taken.samples
    )
    assert "python" in Path(found.most_common(1)[0][0]).name
    assert altered == set()


def test_threads_that_come_and_go_are_sampled() -> None:
    pid, taken, _, _ = sampled(THREADS % BUSY)
    threads = Counter(thread for thread, _, _ in taken.samples)
    assert len({thread for thread, count in threads.items() if thread != pid and count > 20}) == 2


def test_executable_memory_that_comes_is_told_with_its_rights() -> None:
    _, taken, _, _ = sampled(MAPS)
    assert any(one.is_writable and one.file[2] == 0 and one.end - one.begin == 4096 for one in taken.came)


def test_code_that_a_process_writes_over_is_seen() -> None:
    _, _, regions, altered = sampled(CHANGES)
    assert any(one.begin in altered and Path(one.path).name.startswith("libc.so") for one in regions)


def test_a_file_is_known_by_what_the_kernel_calls_its_mapping() -> None:
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    region = next(one for one in samples.executable(os.getpid()) if Path(one.path).name == library._name)
    assert samples.file_of(region.path) == region.file


def test_what_may_not_be_sampled_is_told() -> None:
    with waiting("") as child:
        pass
    with pytest.raises(NotPermitted, match="No such process"):
        Sampling(child.pid)
