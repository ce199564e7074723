"""The further baseline of a run, torch.compile, and what a kernel's speed-up is over it."""

from __future__ import annotations

from dataclasses import dataclass

from storage import relative
from storage.database import Database
from storage.queries import fetch
from storage.relative import Relative


@dataclass(frozen=True, slots=True)
class BaselineRow:
    """A further baseline against eager: `speedup` is eager latency over its own, with its 95 % interval low..high.

    `noise` is half the interval over the speed-up. Latencies are medians of one session, in milliseconds. All are None
    when it could not be had; `failure` says why and is empty otherwise.
    """

    name: str
    speedup: float | None
    low: float | None
    high: float | None
    noise: float | None
    latency_ms: float | None
    baseline_latency_ms: float | None
    failure: str

    def under(self, speedup: float | None, noise: float | None) -> Relative | None:
        """What a kernel with this speed-up over eager is over this baseline; None where either is not known."""
        if speedup is None or noise is None or self.speedup is None or self.noise is None:
            return None
        return relative.over(speedup, noise, self.speedup, self.noise)


def baseline(db: Database, run_id: str) -> BaselineRow | None:
    """The further baseline as last measured; None before the first kernel was timed and for runs of older engines."""
    sql = """SELECT name, speedup, speedup_low AS low, speedup_high AS high, noise, latency_ms, baseline_latency_ms,
        coalesce(failure, '') AS failure FROM baselines WHERE run_id = ? ORDER BY seq DESC LIMIT 1"""
    return fetch.one(db, BaselineRow, sql, [run_id])
