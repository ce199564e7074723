"""Where a run that was forked began: the kernel it took over from another run. Knows names, not folders."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fork:
    """A kernel of another run. `number` counts that run's kernels from 1; the text is in the new run's blobs.

    The latencies (milliseconds) were measured in that run, None where it had none. They are never mixed with what the
    new run measures.
    """

    run_id: str
    candidate_id: str
    number: int
    source_blob: str
    latency_ms: float | None = None
    baseline_latency_ms: float | None = None
