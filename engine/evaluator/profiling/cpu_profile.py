"""One observation of a candidate's worker: what was seen, what limits the kernel, the record and the words for both.

Metrics are in base units; the model gets a summary, people all of it. Knows neither workers nor tensors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from engine.evaluator.profiling.perf import HARDWARE, Mix
from engine.evaluator.profiling.roof import Roof
from storage.results.profile_results import DISTURBED, NEAR_PEAK, Metric, ProfileResult, SourceLine, disturbance

MAX_LINES = 25
TINY_MS = 0.03
FAULT_COST_MS = 0.0005
OVERHEAD_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Report:
    """One profile before it is written down. The call's time is the timing's where there was one, for one call has one
    time; the profiled call's own stands in the evidence."""

    seen: Observation
    mix: Mix | None
    roof: Roof
    timed_ms: float | None = None

    def result(self, source: str, seconds: float) -> ProfileResult:
        """The profile as a result, of this source."""
        return ProfileResult(
            kernel_hash=hashlib.sha256(source.encode()).hexdigest(),
            metrics=tuple(self._metrics()),
            bound=self.bound,
            summary="\n".join(list(self._summary())[:MAX_LINES]),
            raw=self._raw(),
            seconds=seconds,
            missing=tuple(self._missing()),
            evidence=self._evidence(),
            lines=tuple(SourceLine(function, "", line, count, "", 0) for function, line, count in self.seen.lines),
            samples=self.seen.samples if self.seen.lines else 0,
        )

    @property
    def latency_ms(self) -> float:
        """The latency of one call."""
        return self.timed_ms or self.seen.latency_ms

    @property
    def bandwidth_gb_s(self) -> float:
        """Minimum bytes over latency."""
        return self.seen.min_bytes / self.latency_ms / 1e6

    @property
    def rate_gflop_s(self) -> float:
        """Counted operations over latency; 0 when the task's operations are not counted."""
        return self.seen.min_flop / self.latency_ms / 1e6

    @property
    def memory_share(self) -> float:
        """The share of the copy bandwidth measured at this working set."""
        return self.bandwidth_gb_s / self.roof.bandwidth_gb_s(self.seen.min_bytes)

    @property
    def compute_share(self) -> float:
        """The share of the FMA peak."""
        return self.rate_gflop_s / self.roof.peak_gflop_s

    @property
    def processors_busy(self) -> float:
        """Processor time over wall time of the calls. Load on the machine lowers it, so it counts no threads."""
        return self.seen.processor_ms / self.seen.wall_ms

    @property
    def bound(self) -> str:
        """What limits the kernel."""
        packed = self.mix.packed_share if self.mix else None
        seen = self.seen
        bound = bound_of(self.memory_share, self.compute_share, self.latency_ms, seen.minor_faults, packed)
        is_alone = bound is Bound.LATENCY and seen.ran == 1 < seen.threads
        return str(Bound.ONE_THREAD if is_alone else bound)

    def _metrics(self) -> Iterator[Metric]:
        seen = self.seen
        yield Metric("latency", "s", self.latency_ms / 1e3)
        yield Metric("memory throughput", "B/s", self.bandwidth_gb_s * 1e9)
        yield Metric("memory throughput share", "1", self.memory_share)
        if seen.min_flop:
            yield Metric("arithmetic throughput", "FLOP/s", self.rate_gflop_s * 1e9)
            yield Metric("arithmetic throughput share", "1", self.compute_share)
        if seen.ran is not None:
            yield Metric("working threads", "1", seen.ran)
        yield Metric("processors busy", "1", self.processors_busy)
        yield Metric("processors available", "1", seen.threads)
        yield Metric("system time share", "1", seen.system_share)
        yield Metric("page faults per call", "1", seen.minor_faults + seen.major_faults)
        yield Metric("voluntary context switches per call", "1", seen.voluntary_switches)
        yield Metric("involuntary context switches per call", "1", seen.involuntary_switches)
        for name, value in seen.counts.items():
            yield Metric(f"{name} per call", "1", value)
        for share, library, symbol in seen.shares:
            yield Metric("sampled time share", "1", share, kernel=f"{symbol} ({Path(library).name})")
        for name, count in self._mix().items():
            if isinstance(count, int):
                yield Metric(f"{name.replace('_', ' ')} instructions", "1", count)

    def _summary(self) -> Iterator[str]:
        seen, roof = self.seen, self.roof
        yield f"Bound: {self.bound}. Latency {self.latency_ms:.4g} ms on {roof.device}."
        yield (
            f"Memory: {self.bandwidth_gb_s:.3g} GB/s of {roof.bandwidth_gb_s(seen.min_bytes):.3g} GB/s copy bandwidth "
            f"({self.memory_share:.0%}); the task moves at least {seen.min_bytes / 1e6:.4g} MB."
        )
        if seen.min_flop:
            yield f"Arithmetic: {self.rate_gflop_s:.4g} GFLOP/s of {roof.peak_gflop_s:.4g} ({self.compute_share:.1%})."
        yield self._threads()
        if seen.minor_faults * FAULT_COST_MS > 0.05 * self.latency_ms:
            yield f"Page faults: {seen.minor_faults:.0f} per call; memory is mapped anew in every call."
        yield from self._mix_lines()
        if seen.shares:
            yield "Sampled time: " + "; ".join(
                f"{share:.0%} {symbol[:80]} ({Path(library).name})"
                for share, library, symbol in seen.shares[:5]
                if share >= 0.01
            )
        if seen.counts.get("cycles") and seen.counts.get("instructions"):
            yield f"Instructions per cycle: {seen.counts['instructions'] / seen.counts['cycles']:.2f}."
        if seen.remarks:
            yield "The compiler on vectorising your lines:"
            yield from (f"  {remark}" for remark in seen.remarks[:10])

    def _threads(self) -> str:
        if self.seen.ran is None:
            return "Threads: not counted, for some end with each call."
        on = f"on {self.seen.threads} processor{'s' if self.seen.threads > 1 else ''}"
        return (
            f"Threads: the work runs on one thread, {on}." if self.seen.ran == 1 else f"Threads: {self.seen.ran} {on}."
        )

    def _evidence(self) -> dict[str, str]:
        timed = f"; timed without the profiler: {self.timed_ms:.4g} ms" if self.timed_ms else ""
        seen = {"profiled call": f"{self.seen.latency_ms:.4g} ms{timed}"}
        why = disturbance(self.seen.latency_ms, self.timed_ms, self.seen.waited_share)
        return seen | ({DISTURBED: why} if why else {})

    def _mix_lines(self) -> Iterator[str]:
        mix = self.mix
        if mix is None:
            return
        if mix.packed_share is not None:
            widths = f"{mix.zmm} zmm, {mix.ymm} ymm, {mix.xmm} xmm"
            yield (
                f"Code: {mix.packed} packed and {mix.scalar} scalar floating-point instructions, {mix.fma} FMA, "
                f"{mix.divides} divides ({widths})."
            )
        if mix.libm_calls:
            yield f"Scalar library calls in the code: {', '.join(mix.libm_names)}; each handles one element."
        if mix.spills:
            yield f"Register spills: {mix.spills} vector stores to the stack."

    def _raw(self) -> str:
        parts = {"observation": asdict(self.seen), "instructions": self._mix(), "roof": asdict(self.roof)}
        return json.dumps(parts, indent=1)

    def _mix(self) -> dict[str, object]:
        return asdict(self.mix) if self.mix else {}

    def _missing(self) -> Iterator[str]:
        yield from (name for name in HARDWARE if name not in self.seen.counts)
        if self.seen.ran is None:
            yield "working threads"
        if not self.seen.shares:
            yield "sampled time share"
        if not self.seen.min_flop:
            yield "arithmetic throughput"
        if self.mix is None:
            yield "instruction mix"


class Bound(StrEnum):
    """The answers shown to people and to the model. One thread: far from both roofs, which several processors reach
    together, while only one of them works."""

    MEMORY = "memory"
    COMPUTE = "compute"
    OVERHEAD = "overhead"
    LATENCY = "latency"
    ONE_THREAD = "one thread"


def bound_of(
    memory_share: float, compute_share: float, latency_ms: float, minor_faults: float, packed_share: float | None
) -> Bound:
    """Memory or compute when near that roof; overhead when little of the call is the kernel; else what keeps it busy.

    Far from both roofs, mostly scalar arithmetic means the instruction stream is the limit (compute); vector code that
    reaches neither roof waits for something (latency).
    """
    if latency_ms < TINY_MS or minor_faults * FAULT_COST_MS > OVERHEAD_SHARE * latency_ms:
        return Bound.OVERHEAD
    if max(memory_share, compute_share) >= NEAR_PEAK:
        return Bound.MEMORY if memory_share >= compute_share else Bound.COMPUTE
    is_scalar = packed_share is not None and packed_share < 0.5
    return Bound.COMPUTE if is_scalar else Bound.LATENCY


@dataclass(frozen=True, slots=True)
class Observation:
    """Per-call figures of the whole worker process; `shares` are (share, library, symbol) of sampled time, `lines`
    (function, line, samples) of the candidate's own file, of `samples` in all.

    `latency_ms` is the median by the worker's clock, `wall_ms` the mean by the evaluator's. `ran` counts the threads
    that worked in the calls, None where some ended with their call; `waited_share` is how much of the calls' time
    threads were ready and had no processor.
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
    lines: tuple[tuple[str, int, int], ...] = ()
    samples: int = 0
    counts: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Observation:
        """Read what `asdict` and JSON made of one."""
        rows = tuple((float(row[0]), str(row[1]), str(row[2])) for row in plain["shares"])
        texts = {name: tuple(plain[name]) for name in ("libraries", "remarks")}
        lines = tuple((str(row[0]), int(row[1]), int(row[2])) for row in plain["lines"])
        return cls(**{**plain, **texts, "shares": rows, "lines": lines})
