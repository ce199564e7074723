"""What a profiler measured of a kernel, and what makes a profile unbelievable. Knows no file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from storage.results import counters
from storage.results.hardware_limit import CLEARLY_FEWER
from storage.results.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Metric:
    """One profiler value. `launch` counts kernel launches from 0; -1 stands for the whole call."""

    name: str
    unit: str
    value: float
    kernel: str = ""
    launch: int = -1


@dataclass(frozen=True, slots=True)
class Advice:
    """The profiler's own word on one launch. `gain_percent` is the time it thinks could be saved, None if not told."""

    launch: int
    kernel: str
    rule: str
    kind: str
    text: str
    gain_percent: float | None = None


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One line's samples in a profile, and what most of them waited for. `file` and `text` are empty for a line of the
    candidate's own file."""

    kernel: str
    file: str
    line: int
    samples: int
    stall: str
    stall_samples: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class ProfileResult:
    """A profile of one candidate. `lines`, `samples` and `sass` are empty where the profiler has not sampled by
    line."""

    kernel_hash: str
    metrics: tuple[Metric, ...]
    bound: str
    """What holds the kernel back."""
    summary: str
    """What a model may be shown."""
    raw: str = ""
    """The whole report, for people."""
    seconds: float = 0.0
    missing: tuple[str, ...] = ()
    """Metrics that the profiler could not give."""
    advice: tuple[Advice, ...] = ()
    ceilings: Mapping[str, float] = field(default_factory=dict)
    """The machine's rates by name: `memory` in bytes per second, the others (`fp32`, `tf32`, …) in operations per
    second."""
    evidence: Mapping[str, str] = field(default_factory=dict)
    """How and under which conditions it was taken, and under `disturbed` what disturbed it."""
    report: str = ""
    """The profiler's own file in base64; empty where it keeps none."""
    lines: tuple[SourceLine, ...] = ()
    """Source lines with samples, most first."""
    samples: int = 0
    """Of all lines."""
    sass: str = ""
    """The instructions."""
    timeline: Timeline | None = None

    @property
    def disturbance(self) -> str:
        """What disturbed it, empty if nothing did. A disturbed profile is shown to people and to no model."""
        return self.evidence.get(DISTURBED, "")

    @property
    def is_cut(self) -> bool:
        """Whether it holds only the first launches of the call: then the sums of two are of different parts of it."""
        return LAUNCHES in self.evidence

    @property
    def whole(self) -> dict[str, float]:
        """Values of the whole call by name."""
        return {metric.name: metric.value for metric in self.metrics if metric.launch < 0 and not metric.kernel}


def executed_share(profile: ProfileResult, min_flop: int) -> float | None:
    """Operations that the profiled call executed, by the `min_flop` of its task. A product taken apart into three
    counts as three, so a share above 1 says nothing of how much of the task is done.

    None where they were not counted, or not all: only the first launches were profiled, or tensor cores were busy (of
    which not every profiler counts every kind) for so long that the rest of the task may have run on them.
    """
    whole = profile.whole
    kinds = counters.operations(whole)
    if not kinds or not min_flop or profile.is_cut:
        return None
    share = sum(kinds.values()) / min_flop
    unseen = _unseen(whole, profile.ceilings, kinds)
    return None if unseen is None or share < CLEARLY_FEWER <= share + unseen / min_flop else share


def _unseen(whole: Mapping[str, float], ceilings: Mapping[str, float], kinds: Mapping[str, float]) -> float | None:
    """The most operations on tensor cores that may be missing in `kinds`: 0 where as many were counted as the slowest
    kind makes in half the time that the cores were busy. None where nothing says how long that was."""
    counted = sum(value for kind, value in kinds.items() if kind not in ("fp32", "fp64"))
    busy, rates = whole.get(counters.TENSOR_BUSY), [rate for name, rate in ceilings.items() if name in TENSOR_RATES]
    if busy is None or not rates:
        return None
    busy_s = busy / 100 * whole.get("device time", 0.0)
    return 0.0 if counted >= busy_s * min(rates) / 2 else busy_s * max(rates)


NEAR_PEAK = 0.6
"""The share of its peak from which on memory or arithmetic is what holds a kernel back."""
_NEITHER = f"neither memory nor arithmetic reaches {NEAR_PEAK:.0%} of its peak".replace("%", " %")
_REACHES = f"reaches {NEAR_PEAK:.0%} of its peak or more".replace("%", " %")
BOUNDS: Mapping[str, tuple[str, str]] = {
    "memory": ("memory", f"memory {_REACHES}, and no smaller a share than arithmetic"),
    "compute": (
        "compute", f"arithmetic or instruction issue {_REACHES}; on a processor also where most arithmetic is scalar",
    ),
    "latency": ("latency", _NEITHER),
    "underutilised": ("latency, grid below one wave", f"{_NEITHER}, and the device holds more blocks than there are"),
    "one thread": ("one thread", f"{_NEITHER}, and a single thread works"),
    "overhead": ("overhead", "starting the call, or page faults on new memory, take much of its time"),
}  # fmt: skip
"""What a kernel is bound by in the words of people, and what that means with its threshold, by `ProfileResult.bound`.
Profiles without counters and older ones may name others, which stand for themselves."""


def bound_by(bound: str) -> tuple[str, str]:
    """What a kernel is bound by in words, and what that means; that empty where nothing more is known."""
    return BOUNDS.get(bound, (bound or "unknown", ""))


LAUNCHES = "launches"  # evidence of a profile that holds not all launches
TENSOR_RATES = ("tf32", "bf16", "fp8")
DISTURBED = "disturbed"
CROWDED = 0.5
APART = 1.5


def disturbance(profiled_ms: float, timed_ms: float | None, waited_share: float = 0.0, apart: float = APART) -> str:
    """Why a profile cannot be believed, in words; empty when it can.

    The profiled call is made as the timed one is: where it takes `apart` times as long, something else ran beside it.
    Without a timing `waited_share` decides: how much of the calls' time threads were ready and had no processor.
    """
    if timed_ms is not None:
        is_apart = profiled_ms > apart * timed_ms
        return f"the profiled call took {profiled_ms:.4g} ms, the timed one {timed_ms:.4g} ms" if is_apart else ""
    crowded = f"threads waited for a processor during {waited_share:.0%} of the calls' time"
    return crowded if waited_share > CROWDED else ""
