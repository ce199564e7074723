"""Watches a candidate's worker from outside while it runs: clock, processor time, faults, switches, perf samples."""

from __future__ import annotations

import os
import statistics
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.evaluation.bench import Bench
from engine.evaluation.checking import call_candidate
from engine.evaluation.values import Style
from engine.profiling import counters
from engine.profiling.observation import Observation

MIN_CALLS = 1
MAX_CALLS = 2000
SAMPLED_S = 0.8


def observe(bench: Bench, folder: Path) -> dict[str, Any]:
    """Call the candidate on one set of inputs for about a second and report."""
    leaves = bench.ask_reference("make", seed=int.from_bytes(os.urandom(6), "little"), style=str(Style.OWN))["leaves"]
    call_candidate(bench, leaves, "profile warm-up")
    bench.ask_candidate("load", "a profiled call", leaves=leaves, poison="", seed=bench.call_seed)
    pid = bench.candidate.inner_pid
    sampling = counters.Sampling(pid, folder, counters.hardware_events())
    time.sleep(0.15)
    began = time.perf_counter()
    before, times_ns = _usage(pid), _calls(bench)
    after, wall_ms = _usage(pid), (time.perf_counter() - began) * 1e3
    shares, counts = sampling.finish()
    used = {name: (after[name] - before[name]) / len(times_ns) for name in before}
    groups = [bench.trusted[name] for name in ("inputs", "own", "weights")]
    processor = used["user"] + used["system"]
    return asdict(
        Observation(
            calls=len(times_ns),
            latency_ms=statistics.median(times_ns) / 1e6,
            wall_ms=wall_ms / len(times_ns),
            processor_ms=used["running_ns"] / 1e6,
            system_share=used["system"] / processor if processor else 0.0,
            minor_faults=used["minor_faults"],
            major_faults=used["major_faults"],
            voluntary_switches=used["voluntary"],
            involuntary_switches=used["involuntary"],
            threads=int(os.environ.get("OMP_NUM_THREADS", "1")),
            min_bytes=sum(tensor.nbytes for group in groups for tensor in group),
            min_flop=bench.flop,
            libraries=tuple(built.library for built in bench.builds),
            remarks=tuple(remark for built in bench.builds for remark in built.remarks),
            shares=tuple(shares[:12]),
            counts={name: value / len(times_ns) for name, value in counts.items()},
        )
    )


def _calls(bench: Bench) -> list[int]:
    deadline = time.monotonic() + SAMPLED_S
    times_ns: list[int] = []
    while len(times_ns) < MIN_CALLS or (time.monotonic() < deadline and len(times_ns) < MAX_CALLS):
        times_ns.append(int(bench.ask_candidate("go", "a profiled call")["ns"]))
    return times_ns


def _usage(pid: int) -> dict[str, float]:
    """Totals of all threads since they started, as the kernel counts them."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    totals = {
        "minor_faults": float(words[7]),
        "major_faults": float(words[9]),
        "user": float(words[11]),
        "system": float(words[12]),
        "running_ns": 0.0,
        "voluntary": 0.0,
        "involuntary": 0.0,
    }
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            totals["running_ns"] += float((task / "schedstat").read_text().split()[0])
            for line in (task / "status").read_text().splitlines():
                if line.startswith("voluntary_ctxt"):
                    totals["voluntary"] += float(line.split()[1])
                if line.startswith("nonvoluntary_ctxt"):
                    totals["involuntary"] += float(line.split()[1])
    return totals
