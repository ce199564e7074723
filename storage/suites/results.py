"""What one run of a suite has come to, as plain figures: made by `measured`."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from storage.results import relative
from storage.results.check_records import CheckOutcome
from storage.run.labels import MarkKind
from storage.run.steering.command_arguments import MANUAL

TRY = (
    "A try is a kernel that the model has written and that was judged, repairs included, or a step that brought none. "
    "A reply that had to be asked for again, as where a patch did not apply, is no try of its own."
)


@dataclass(frozen=True, slots=True)
class Try:
    """A kernel that the model has written and that was judged, repairs included, or a step whose replies brought none.

    `is_alone`: its step's prompt was that of the run's first try, so it was told of no other.
    """

    is_compiled: bool
    is_passed: bool
    is_alone: bool


@dataclass(frozen=True, slots=True)
class TimedKernel:
    """A correct and timed kernel of a run, and what had been spent when it was first timed.

    `step` is its step of the search, which CuTeGen calls depth.
    `engine_s` is the engine's time in steps, `device_s` that for which evaluations held the device. Tokens and
    dollars are None once any of them is unknown.
    """

    candidate_id: str
    speedup: float
    low: float
    high: float
    noise: float
    step: int
    calls: int
    engine_s: float
    tokens: int | None
    cost_usd: float | None
    latency_ms: float
    device_s: float


@dataclass(frozen=True, slots=True)
class BestKernel:
    """The fastest correct kernel of a run. `eager_ms` is the baseline's latency in the same session.

    `ratio_of_means`: mean baseline latency over mean candidate latency of the timed pairs. `flags` name the check
    of each finding to look at. `other_shapes` and `special_values` say how those checks ended, None where they were not
    recorded. `trials` were made, and of each other one `left_out` says why it was not. Errors, `tolerance` and `seed`
    are as in CheckResult. `own_share` is the share of a call in the kernel's own code, the rest being operators left to
    PyTorch; None where it was not observed.
    """

    candidate_id: str
    source_blob: str
    speedup: float
    low: float
    high: float
    noise: float
    latency_ms: float
    eager_ms: float
    ratio_of_means: float
    pairs: int
    precision: str
    max_error: float | None
    max_abs_error: float | None
    tolerance: float | None
    trials: int
    left_out: tuple[str, ...]
    seed: int | None
    flags: tuple[str, ...]
    other_shapes: CheckOutcome | None
    special_values: CheckOutcome | None
    own_share: float | None = None


@dataclass(frozen=True)
class RunResult:
    """One run. `device` is its name alone, whatever a kernel has reached there.

    `timed` and `tries` stand in the order they were made; `best` is None before the first correct kernel. `limit_ms` is
    the hardware limit of the task on its device, None before it was measured and where a kernel has taken its place
    (`HardwareLimit.is_known`); `limited_by` says whether memory or compute sets it. `bound` is what the profile of the
    best kernel says, empty without one. `second_speedup` is that of the fastest baseline beside eager, named
    `second_name`, None where none was measured. `measured` is that of its Policy: figures of two such do not compare.
    It is kept for many drawings of a page, and what they count in it too.
    """

    run_id: str
    kernel_class: str
    language: str
    toolchain: str
    model: str
    strategy: str
    measured: str
    device: str
    limit_ms: float | None
    second_name: str
    second_speedup: float | None
    best: BestKernel | None
    timed: tuple[TimedKernel, ...]
    tries: tuple[Try, ...]
    calls: int
    engine_s: float
    tokens: int | None
    cost_usd: float | None
    limited_by: str = ""
    bound: str = ""
    device_s: float = 0.0
    mark: MarkKind | None = None
    """What a person found of the best kernel."""

    @property
    def is_unrecorded(self) -> bool:
        """Whether tokens and dollars are zero because its replies, of the model "manual", came from elsewhere."""
        return self.model == MANUAL and self.calls > 0 and self.tokens == 0 and self.cost_usd == 0

    @functools.cached_property
    def correct(self) -> int:
        """Correct kernels that the model has written."""
        return sum(attempt.is_passed for attempt in self.tries)

    @functools.cached_property
    def gains(self) -> int:
        """Kernels that were faster than the best before them beyond the noise; a run's first correct one is none."""
        count = 0
        best: TimedKernel | None = None
        for kernel in self.timed:
            if best is None or kernel.speedup > best.speedup:
                gain = relative.gain(kernel, best, is_on_gpu=self.toolchain != "cpu") if best else None
                count += gain.is_faster if gain else 0
                best = kernel
        return count
