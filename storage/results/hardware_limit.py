"""What a device is, and the time that no kernel of a task can beat on it. Knows no file."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

REACHED = ", raised to what a kernel reached"
MASKING = frozenset({"masked_fill"})
MASKED = re.compile(r"\.masked_fill_?\(|is_causal\s*=\s*True")
UNCOUNTED = frozenset({"gru", "lstm", "rnn_tanh", "rnn_relu"})
"""Operators full of products that a library may run as one, of which PyTorch's own formulas then count none."""
AT_THE_LIMIT = 1.05
"""Two measurements of one machine differ by as much: a kernel that beats a limit by less has reached it."""
CLEARLY_FEWER = 0.8
"""A correct kernel that executes less than this share of the operations counted for a task leaves out a part of the
work. Not nearer to 1: products with the zeros of a padding are counted and need not be done. On an H200 kernels that
skip nothing else execute 0.89 (a transposed convolution) to 0.97; those that do without a part 0.14 to 0.56."""
FP8 = "fp8"
ABOVE_HALVES = 1.5  # FP8 is twice as fast as halves, and two measurements of one rate differ by a few percent
PRODUCTS_PER_FP32 = 3
"""An fp32 product made of three products of halves is as exact. Halves are tf32, or fp16 (bf16's rate) with operands
scaled by powers of two: kernels of both kinds passed every check on an H200."""


def stands_on_float8(peak: float, rates: Mapping[str, float]) -> bool:
    """Whether a limit's peak is a rate of FP8 products, given the device's rates in the same unit."""
    return peak > ABOVE_HALVES * rates.get("bf16", peak)


def useful_rates(rates: Mapping[str, float], arithmetic: str, *, has_float8: bool) -> dict[str, float]:
    """How fast each unit (`fp32`, `tf32`, `bf16`; `fp8` where a task has 8-bit floats) does a task's own operations,
    within its class of `arithmetic`: for fp32 the rate of halves divided by the products that one takes. The best of
    them is the limit's peak."""
    rates = {unit: rate for unit, rate in rates.items() if unit != FP8 or (has_float8 and arithmetic == "half")}
    match arithmetic:
        case "half":
            return rates
        case "tf32":
            return {unit: rate for unit, rate in rates.items() if unit != "bf16"}
        case _:
            return {unit: rate if unit == "fp32" else rate / PRODUCTS_PER_FP32 for unit, rate in rates.items()}


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What one device is: asked of it, or measured on it. 0 where the device has no such thing, or does not tell."""

    architecture: str
    """As its compiler calls it: `sm_90a`; of a processor its widest vectors: `avx512`, `avx2`, `sse`."""
    processors: int
    """Multiprocessors of a GPU; of a host the threads that a kernel may use, on `cores` cores."""
    memory_gb_s: float
    """Read plus written far beyond the caches, in 1e9 bytes per second."""
    rates_gflop_s: Mapping[str, float] = field(default_factory=dict)
    """In 1e9 operations per second, by name (`fp32`, `tf32`, `bf16`)."""
    cores: int = 0
    vector_bits: int = 0
    l1_bytes: int = 0
    """Data cache of one core."""
    l2_bytes: int = 0
    """Of one core, or of the whole GPU."""
    l3_bytes: int = 0
    """Shared by cores."""
    shared_bytes: int = 0
    """Shared memory of one multiprocessor."""
    block_shared_bytes: int = 0
    """The most shared memory that one block may ask for."""
    registers: int = 0
    """Of one multiprocessor, as are `warps` and `blocks`."""
    warps: int = 0
    blocks: int = 0
    has_clusters: bool = False
    """Whether blocks can be launched in clusters."""
    cluster_blocks: int = 0
    """The most blocks of a cluster; 0 where it is not known."""


@dataclass(frozen=True, slots=True)
class CalledOperator:
    """An operator of PyTorch in one call of a reference: `elements` of its largest inputs in all, -1 where nobody can
    tell."""

    name: str
    calls: int
    elements: int


@dataclass(frozen=True, slots=True)
class LaidOut:
    """A tensor of a reference's state that fills its memory in another order than the usual one; strides in
    elements."""

    name: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HardwareLimit:
    """Speed of light of one task on one machine: the larger of bytes over bandwidth and operations over peak.

    `facts` is None in runs made before devices were described. `signature` is how the task's forward is called and
    what it returns, with shapes and dtypes, where its text does not tell plainly. `operators` are what one call of it
    runs that computes or copies, the largest first. `laid_out` is empty where all weights lie in the usual order.
    `others_share` is the share of the processors that other programs used just before the quietest of the measurements
    behind the rates; None where that was not recorded, as on a GPU. `measured_ms` is the limit that was measured, in
    milliseconds, where a kernel was faster and raised it; None where none has, or in journals from before it was kept.
    `leaves_masked_out`: `min_flop` is less than the reference's products, by what its masks make needless; None in
    journals from before masks were looked at. `is_by_masked_source`: the task's text is known to mask.
    `executed_share`: the least share of `min_flop` that a correct kernel of the run executed, 0..1 or more; None where
    no profile counts that.
    """

    device: str
    bandwidth_gb_s: float
    peak_gflop_s: float
    min_bytes: int
    min_flop: int
    facts: DeviceFacts | None = None
    signature: str = ""
    operators: tuple[CalledOperator, ...] = ()
    laid_out: tuple[LaidOut, ...] = ()
    others_share: float | None = None
    measured_ms: float | None = None
    leaves_masked_out: bool | None = None
    is_by_masked_source: bool = False
    executed_share: float | None = None

    def raised_to(self, latency_ms: float) -> HardwareLimit:
        """The limit with both rates raised so far that a kernel of this latency stands exactly on it."""
        factor = self.limit_ms / latency_ms
        return replace(
            self,
            device=f"{self.model}{REACHED}",
            bandwidth_gb_s=self.bandwidth_gb_s * factor,
            peak_gflop_s=self.peak_gflop_s * factor,
            measured_ms=self.limit_ms,
        )

    def after(self, earlier: HardwareLimit | None) -> HardwareLimit:
        """This limit with what had been measured before a kernel raised it, from the run's limit before this one."""
        if not self.is_raised or self.measured_ms is not None or earlier is None:
            return self
        return replace(self, measured_ms=earlier.measured_ms if earlier.is_raised else earlier.limit_ms)

    @property
    def model(self) -> str:
        """The model of device, without the mark of a limit that a kernel raised."""
        return self.device.removesuffix(REACHED)

    @property
    def is_raised(self) -> bool:
        """Whether it is a kernel's own latency."""
        return self.device.endswith(REACHED)

    @property
    def is_known(self) -> bool:
        """False where a kernel was faster than the measured limit by more than measurements differ: its own latency
        took the limit's place, and how much faster another could be is not known. Nor where a kernel may skip some of
        the operations that set the limit, or has; nor where its products were not counted."""
        if self.may_skip or self.is_undercut or self.leaves_out_products:
            return False
        return not self.is_raised or (self.measured_ms or math.inf) <= AT_THE_LIMIT * self.limit_ms

    @property
    def leaves_out_products(self) -> bool:
        """Whether nobody counted the products of a task that has some: its bytes alone take far less than it needs."""
        return not self.min_flop and any(row.name in UNCOUNTED for row in self.operators)

    @property
    def may_skip(self) -> bool:
        """Whether all operations of a reference that masks some set the limit: a kernel need not do those."""
        is_masked = self.is_by_masked_source or any(row.name in MASKING for row in self.operators)
        return self.leaves_masked_out is None and is_masked and self.bound_by == "compute"

    @property
    def is_undercut(self) -> bool:
        """Whether a correct kernel did without a part of the operations that set the limit. Its own are no limit
        either: another kernel may need still fewer."""
        share = self.executed_share
        return share is not None and share < CLEARLY_FEWER and self.bound_by == "compute"

    @property
    def counted_ms(self) -> float:
        """Milliseconds that all counted bytes and operations take at the measured rates, whatever a kernel reached."""
        return self.measured_ms if self.is_raised and self.measured_ms is not None else self.limit_ms

    def of_source(self, source: str) -> HardwareLimit:
        """The limit of a task of this text."""
        is_masked = self.leaves_masked_out is None and MASKED.search(source) is not None
        return replace(self, is_by_masked_source=True) if is_masked else self

    @property
    def known_ms(self) -> float | None:
        """`limit_ms` where it is known."""
        return self.limit_ms if self.is_known else None

    @property
    def as_measured_ms(self) -> float | None:
        """The limit that timings were held against, before a kernel that was faster raised it."""
        return self.counted_ms if self.is_known else None

    def reached_at(self, latency_ms: float) -> float | None:
        """The share of the limit that a kernel of this latency has reached; None where the limit is not known."""
        return self.limit_ms / latency_ms if self.is_known else None

    @property
    def limit_ms(self) -> float:
        """Milliseconds no correct kernel can beat on this device."""
        return max(self.memory_ms, self.compute_ms)

    @property
    def memory_ms(self) -> float:
        """Milliseconds that moving the bytes alone takes."""
        return 1e3 * self.min_bytes / (self.bandwidth_gb_s * 1e9)

    @property
    def compute_ms(self) -> float:
        """Milliseconds that the operations alone take."""
        return 1e3 * self.min_flop / (self.peak_gflop_s * 1e9)

    @property
    def bound_by(self) -> str:
        """What sets the limit: memory or compute."""
        return "memory" if self.memory_ms >= self.compute_ms else "compute"
