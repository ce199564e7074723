"""What was seen of a candidate's worker from outside while it ran. A record; knows neither workers nor tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Observation:
    """Per-call figures of the whole worker process; `shares` are (share, library, symbol) of sampled time.

    `latency_ms` is the median by the worker's clock, `wall_ms` the mean by the judge's. `ran` counts the threads that
    worked in the calls, None where some ended with their call; `waited_share` is how much of the calls' time threads
    were ready and had no processor.
    """

    calls: int
    latency_ms: float
    wall_ms: float
    processor_ms: float
    waited_share: float
    ran: int | None
    system_share: float
    minor_faults: float
    major_faults: float
    voluntary_switches: float
    involuntary_switches: float
    threads: int
    min_bytes: int
    min_flop: int
    libraries: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    shares: tuple[tuple[float, str, str], ...] = ()
    counts: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Observation:
        """Read what `asdict` and JSON made of one."""
        rows = tuple((float(row[0]), str(row[1]), str(row[2])) for row in plain["shares"])
        texts = {name: tuple(plain[name]) for name in ("libraries", "remarks")}
        return cls(**{**plain, **texts, "shares": rows})
