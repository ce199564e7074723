"""Whether the GPU still works for a candidate that stands still. The judge's own copies tell: contexts take turns on
the device, and a kernel that never ends takes its turns too."""

from __future__ import annotations

import statistics
from typing import Any

import torch

from engine.evaluation.bench import Bench
from engine.evaluation.failures import Failure, TimedCallFailed
from engine.evaluation.idle import CHECK
from storage.records import Verdict

BYTES = 256 << 20
COPIES = 40
SLOWER = 1.3
LEAST_MS = 0.05

_Event: Any = torch.cuda.Event


def refuse_busy_device(bench: Bench) -> str:
    """Compare copies beside the stopped candidate with copies after its end; it is ended here.

    Returns:
        What was seen, for the proof.

    Raises:
        TimedCallFailed: something of the candidate's runs on.
    """
    source = torch.empty(BYTES, dtype=torch.uint8, device=bench.device)
    target = torch.empty_like(source)
    _copies_ms(source, target)
    beside = _copies_ms(source, target)
    bench.candidate.end()
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
