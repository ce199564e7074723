"""Where a worker's processor time goes, on real processes: what is told, and what cannot be."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from engine.evaluator.processes.sampled import Sampled

WAITING = """
import os, time
print(flush=True)
input()
{first}
end = time.process_time() + 0.3  # of its own, however busy the machine is
while time.process_time() < end:
    for _ in range(20000): pass
print(flush=True)
input()
"""


@contextmanager
def worker(first: str = "") -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", WAITING.format(first=first)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()  # by now its libraries are mapped, as those of a worker are that is timed
        yield child
        child.kill()


def called(child: subprocess.Popen[bytes], sampled: Sampled) -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    sampled.begin()
    began = time.perf_counter_ns()
    child.stdin.write(b"\n")
    child.stdin.flush()
    child.stdout.readline()
    sampled.drain()
    sampled.take(began, time.perf_counter_ns())


def test_a_call_that_only_interprets_has_too_few_samples_to_decide() -> None:
    with worker() as child:
        sampled = Sampled(child.pid)
        called(child, sampled)
        reading = sampled.reading([], moves=False)
        sampled.close()
    assert reading.failure is None
    assert not reading.is_prevented
    assert "samples fall into calls" in reading.why


def test_a_host_that_forbids_sampling_is_no_fault_of_the_candidates() -> None:
    with worker() as child:
        pass
    sampled = Sampled(child.pid)
    sampled.begin()
    sampled.take(0, 1)
    reading = sampled.reading([], moves=False)
    assert reading.why.startswith("this host does not let processes be sampled from outside")
    assert not reading.is_prevented
    sampled.close()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs a second processor")
def test_a_worker_that_leaves_the_sampled_processors_prevents_it() -> None:
    here = os.sched_getaffinity(0)
    first, second, *_ = sorted(here)
    with worker(f"os.sched_setaffinity(0, {{{second}}})") as child:
        os.sched_setaffinity(0, {first})
        sampled = Sampled(child.pid)
        os.sched_setaffinity(0, here)
        called(child, sampled)
        reading = sampled.reading([], moves=False)
        sampled.close()
    assert reading.is_prevented
    assert "on processors could be seen" in reading.why
