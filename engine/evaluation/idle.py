"""What a worker does while nobody asks it anything: processor time burned, processes left. Refuses what an honest
kernel never needs; a pool of waiting threads is fine."""

from __future__ import annotations

import os
import time

from engine.evaluation.failures import Failure, TimedCallFailed
from engine.evaluation.worker import Worker
from engine.machine import processes, threads
from storage.records import Verdict

SETTLE_S = (0.1, 0.4)
WINDOW_S = 0.05
BUSY = 0.25
CHECK = "idle threads"


def refuse_strays(candidate: Worker, others: list[Worker]) -> None:
    """Between calls there is the worker's own process and no other.

    Raises:
        TimedCallFailed: it left one running.
    """
    if left := _strays(candidate, others):
        message = f"processes left running after a call: {', '.join(left[:5])}; a kernel may start none"
        raise TimedCallFailed(CHECK, Failure(Verdict.REFUSED, message))


def refuse_burners(candidate: Worker) -> str:
    """Let the worker run unasked. OpenMP threads spin a while for their next region, so a busy one gets a second look.

    Returns:
        What was seen, for the proof.

    Raises:
        TimedCallFailed: its threads keep a processor busy.
    """
    candidate.resume()
    try:
        pid = candidate.inner_pid
        for settle_s in SETTLE_S:
            time.sleep(settle_s)
            share = _share(pid)
            if share < BUSY:
                return f"{threads.count(pid)} threads, {share:.0%} of one processor while nothing is asked"
    finally:
        candidate.stop()
    message = f"threads left running: {share:.0%} of one processor is busy while nothing is asked; join them in forward"
    raise TimedCallFailed(CHECK, Failure(Verdict.REFUSED, message))


def _strays(candidate: Worker, others: list[Worker]) -> list[str]:
    """Live processes that the candidate started: beside its worker, or left to this process by a parent that ended."""
    own = {candidate.pid, candidate.inner_pid, *(worker.pid for worker in others)}
    found = [pid for pid in (*processes.children(os.getpid()), *candidate.members()) if pid not in own]
    return [name for pid in dict.fromkeys(found) if (name := threads.running_name(pid))]


def _share(pid: int) -> float:
    """Of one processor, over the window. The kernel may wake this process late: its own clock gives the length."""
    began, before = time.monotonic_ns(), threads.processor_ns(pid)
    time.sleep(WINDOW_S)
    return max(0, threads.processor_ns(pid) - before) / (time.monotonic_ns() - began)
