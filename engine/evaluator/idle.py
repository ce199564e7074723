"""What a candidate does while nobody asks it anything: processor time burned, processes left, a GPU kept busy.

Refuses what an honest kernel never needs; a pool of waiting threads is fine.
"""

from __future__ import annotations

import os
import statistics
import time
from typing import Any

import torch

from engine.evaluation.candidate_failures import Failure, TimedCallFailed
from engine.evaluator.worker import Worker
from engine.evaluator.worker_pair import WorkerPair
from engine.machine import processes, threads
from storage.records import Verdict

SETTLE_S = (0.1, 0.4)
WINDOW_S = 0.05
BUSY = 0.25
CHECK = "idle threads"
BYTES = 256 << 20
COPIES = 40
SLOWER = 1.3
LEAST_MS = 0.05
_Event: Any = torch.cuda.Event


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
        What was seen, for the record.

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


def refuse_busy_device(workers: WorkerPair) -> str:
    """Compare copies beside the stopped candidate with copies after its end; it is ended here.

    Returns:
        What was seen, for the record.

    Raises:
        TimedCallFailed: something of the candidate's runs on.
    """
    source = torch.empty(BYTES, dtype=torch.uint8, device=workers.device)
    target = torch.empty_like(source)
    _copies_ms(source, target)
    beside = _copies_ms(source, target)
    workers.candidate.end()
    after = _copies_ms(source, target)
    told = f"copies take {beside:.3g} ms beside the stopped candidate and {after:.3g} ms after its end"
    if beside > SLOWER * after + LEAST_MS:
        message = f"work goes on on the device after forward has returned: {told}; wait for it in forward"
        raise TimedCallFailed(CHECK, Failure(Verdict.REFUSED, message))
    return told


def _copies_ms(source: torch.Tensor, target: torch.Tensor) -> float:
    """Median over copies."""
    took: list[float] = []
    for _ in range(COPIES):
        begin, end = (_Event(enable_timing=True) for _ in range(2))
        begin.record()
        target.copy_(source)
        end.record()
        end.synchronize()
        took.append(begin.elapsed_time(end))
    return statistics.median(took)
