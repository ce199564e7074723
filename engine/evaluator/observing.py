"""Watches a candidate's worker from outside while it runs: clock, processor time, faults, switches, perf samples."""

from __future__ import annotations

import functools
import os
import statistics
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.evaluation.candidate_failures import Failure, TimedCallFailed
from engine.evaluation.clock import Call, waited_share
from engine.evaluation.trials import Style
from engine.evaluator.timed_worker import TimedWorker
from engine.evaluator.worker_pair import WorkerPair, call_candidate
from engine.machine import quiet, threads
from engine.profiling import perf
from engine.profiling.cpu_profile import Observation

MIN_CALLS = 1
MAX_CALLS = 2000
SAMPLED_S = 0.8
RAN = 0.25  # of the busiest thread's time: waking and going back to sleep takes a waiting thread some, too


def observe(workers: WorkerPair, folder: Path) -> dict[str, Any] | Failure:
    """Call the candidate as a timing does, on one set of inputs for about a second, and report.

    Nothing is counted but what happens within the calls: in between the worker stands still.
    """
    assert workers.reference is not None
    leaves = workers.ask_reference("make", seed=int.from_bytes(os.urandom(6), "little"), style=str(Style.OWN))["leaves"]
    call_candidate(workers, leaves, "profile warm-up")
    workers.reference.stop()
    workers.ask_candidate("load", "a profiled call", leaves=leaves, poison="", seed=workers.call_seed)
    pid = workers.candidate.inner_pid
    quiet.raise_session(pid)
    side = TimedWorker(workers.candidate, functools.partial(_ask, workers), workers.shared, lambda told: None)
    sampling = perf.Sampling(pid, folder, perf.hardware_events())
    time.sleep(0.15)
    try:
        side.halt()
        before, ran_before = _usage(pid), threads.each_ns(pid)
        calls = _calls(side)
        after, ran = _usage(pid), threads.each_ns(pid)
    except TimedCallFailed as error:
        return error.failure
    finally:
        shares, counts = sampling.finish()
    used = {name: (after[name] - before[name]) / len(calls) for name in before}
    groups = [workers.trusted[name] for name in ("inputs", "own", "weights")]
    processor = used["user"] + used["system"]
    return asdict(
        Observation(
            calls=len(calls),
            latency_ms=statistics.median(call.worker_ns for call in calls) / 1e6,
            wall_ms=sum(call.evaluator_ns for call in calls) / len(calls) / 1e6,
            processor_ms=used["processor_ns"] / 1e6,
            waited_share=waited_share(calls),
            ran=ran_threads([ran[name] - ran_before.get(name, 0) for name in ran], used["processor_ns"] * len(calls)),
            system_share=used["system"] / processor if processor else 0.0,
            minor_faults=used["minor_faults"],
            major_faults=used["major_faults"],
            voluntary_switches=used["voluntary"],
            involuntary_switches=used["involuntary"],
            threads=int(os.environ.get("OMP_NUM_THREADS", "1")),
            min_bytes=sum(tensor.nbytes for group in groups for tensor in group),
            min_flop=workers.flop,
            libraries=tuple(built.library for built in workers.builds),
            remarks=tuple(remark for built in workers.builds for remark in built.remarks),
            shares=tuple(shares),
            counts={name: value / len(calls) for name, value in counts.items()},
        )
    )


def ran_threads(each_ns: Sequence[int], processor_ns: float) -> int | None:
    """How many threads worked in the calls, from what each was given; None where some ended with their call.

    However busy the machine is, a thread with work to do gets its turn: load changes how much it was given, not that.
    """
    if not each_ns or sum(each_ns) < (1 - RAN) * processor_ns:
        return None
    return sum(one >= RAN * max(each_ns) for one in each_ns)


def _ask(workers: WorkerPair, name: str, **arguments: Any) -> dict[str, Any]:
    return workers.ask_candidate(name, "a profiled call", **arguments)


def _calls(side: TimedWorker) -> list[Call]:
    deadline = time.monotonic() + SAMPLED_S
    calls: list[Call] = []
    while len(calls) < MIN_CALLS or (time.monotonic() < deadline and len(calls) < MAX_CALLS):
        calls.append(side.again())
    return calls


def _usage(pid: int) -> dict[str, float]:
    """Totals since the process started, as the kernel counts them; of switches those of the living threads."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    totals = {
        "minor_faults": float(words[7]),
        "major_faults": float(words[9]),
        "user": float(words[11]),
        "system": float(words[12]),
        "processor_ns": float(threads.total_ns(pid)),
        "voluntary": 0.0,
        "involuntary": 0.0,
    }
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            for line in (task / "status").read_text().splitlines():
                if line.startswith("voluntary_ctxt"):
                    totals["voluntary"] += float(line.split()[1])
                if line.startswith("nonvoluntary_ctxt"):
                    totals["involuntary"] += float(line.split()[1])
    return totals
