"""What building, checking and timing a kernel came to. Knows no file."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from storage.results import relative
from storage.results.check_records import CheckOutcome, CheckRecord, trials_in_words, why_left_out
from storage.results.timeline import Timeline
from storage.results.vocabulary import Verdict


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Where a wrong output went wrong."""

    index: tuple[int, ...]
    """The first wrong element in row-major order."""
    expected: float
    actual: float
    wrong_count: int
    total_count: int
    max_abs_error: float
    max_rel_error: float
    shape: tuple[int, ...]
    heat: tuple[tuple[float, ...], ...] = ()
    """The share of wrong elements (0 to 1) on a grid of at most 16 x 16 cells over the output seen as a matrix (rows =
    product of leading dimensions, columns = last dimension)."""
    trial: str = ""
    """Which trial it was found in, in words."""


def percent_wrong(wrong: int, total: int) -> str:
    """The share of wrong elements in percent, as messages and pages write it; only all of them are 100."""
    share = 100 * wrong / max(total, 1)
    if 0 < wrong < total and not 0.01 <= share < 99.995:
        return "under 0.01" if share < 1 else "over 99.99"
    return f"{share:.2f}"


@dataclass(frozen=True, slots=True)
class KernelResources:
    """What the compiler gave one device kernel. Sizes are bytes; `kernel` is its readable, shortened name.

    Registers, spills and stack are per thread; `shared_bytes` is static shared memory per block.
    """

    kernel: str
    registers: int
    spill_stores: int = 0
    spill_loads: int = 0
    shared_bytes: int = 0
    stack_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Tunable:
    """A named number that a source declares open to tuning: what it is there, and all that it may be, rising."""

    name: str
    value: int
    candidates: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CompileResult:
    """Result of building one source."""

    is_ok: bool
    seconds: float
    diagnostics: str = ""
    """What the compiler said, cut for reading."""
    log: str = ""
    """The whole log."""
    remarks: tuple[str, ...] = ()
    """What was left out or should be known of a build that worked, each a sentence."""
    is_cached: bool = False
    verdict: Verdict = Verdict.PASSED
    proofs: tuple[CheckRecord, ...] = ()
    """Every check made of the build, held or broken."""
    resources: tuple[KernelResources, ...] = ()
    """What the compiler gave each device kernel."""
    timeline: Timeline | None = None
    """Where the time went, as in the other results; None where a result was remembered, for sources that are built
    beside others, and in journals of versions that did not look."""

    def __post_init__(self) -> None:
        if self.is_ok is not (self.verdict is Verdict.PASSED):
            raise ValueError("a build is ok exactly when its verdict is passed")

    def brief(self) -> CompileResult:
        """The verdict and its headline."""
        return BUILT if self.is_ok else CompileResult(False, 0.0, headline(self), verdict=self.verdict)


LEFT_OUT_TRIAL = ": left out, "
"""What stands between the name of a trial that was not made and why."""


def made(trials: Iterable[str]) -> tuple[str, ...]:
    """The names of those that were made."""
    return tuple(trial for trial in trials if LEFT_OUT_TRIAL not in trial)


def left_out(trials: Iterable[str]) -> dict[str, str]:
    """Why each of the others was not, by name."""
    named = (trial.partition(LEFT_OUT_TRIAL) for trial in trials)
    return {name: why_left_out(reason) for name, is_out, reason in named if is_out}


def in_trials(trials: Sequence[str]) -> str:
    """How many were made and how many not, as in "it passes the check in 14 trials"."""
    return trials_in_words(len(made(trials)), [*left_out(trials).values()])


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of comparing a candidate with the float64 reference over several trials."""

    verdict: Verdict
    seconds: float
    trials: tuple[str, ...] = ()
    """Names of the trials, in order; of one that was not made also that and why."""
    max_error: float | None = None
    """The largest |candidate - reference64| / (|reference64| + rms(reference64)) of the trial in which that comes
    nearest to its tolerance or is furthest over it; other trials may have larger ones with larger tolerances."""
    max_abs_error: float | None = None
    tolerance: float | None = None
    """What bounds `max_error` in that trial."""
    reference_error: float | None = None
    """`max_error` of the reference in its own dtype."""
    mismatch: Mismatch | None = None
    message: str = ""
    """What is wrong, written for the model."""
    precision: str = ""
    seed: int | None = None
    """What the inputs were drawn from."""
    evidence: Mapping[str, str] = field(default_factory=dict)
    """How and under which conditions it was checked."""
    proofs: tuple[CheckRecord, ...] = ()
    """Every check made of the candidate, held or broken."""
    timeline: Timeline | None = None
    rules: int = 1
    """The version of the judging rules, `storage.results.policy.RULES`; results from before they had one are of the
    first."""

    @property
    def made_trials(self) -> tuple[str, ...]:
        """Names of the trials that were made."""
        return made(self.trials)

    @property
    def left_out(self) -> Mapping[str, str]:
        """Why each other trial was not made, by name."""
        return left_out(self.trials)

    @property
    def in_trials(self) -> str:
        """How many trials were made and how many not, as in "it passes the check in 14 trials"."""
        return in_trials(self.trials)

    def brief(self) -> CheckResult:
        """The verdict and its headline."""
        is_passed = self.verdict is Verdict.PASSED
        return CORRECT if is_passed else CheckResult(self.verdict, 0.0, message=headline(self))


# What a thin fold keeps of a build and of a check that passed.
BUILT, CORRECT = CompileResult(True, 0.0), CheckResult(Verdict.PASSED, 0.0)

HEADLINE_LENGTH = 240


def headline(result: CompileResult | CheckResult) -> str:
    """Why a candidate failed, in one line: the check that a refused one broke, the first error of a build, or the first
    line of the message. A refused one's message is written for the model and opens more generally."""
    broken = [check_record for check_record in result.proofs if check_record.standing is CheckOutcome.BROKEN]
    if broken and result.verdict is Verdict.REFUSED:
        return _first_line(f"{broken[0].check}: {broken[0].detail}")
    if isinstance(result, CheckResult):
        return _first_line(result.message)
    errors = [line for line in result.diagnostics.splitlines() if "error" in line.lower()]
    return _first_line(errors[0] if errors else result.diagnostics)


def _first_line(text: str) -> str:
    """The first line that says something, cut to fit."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first if len(first) <= HEADLINE_LENGTH else first[: HEADLINE_LENGTH - 1] + "…"


TIMED_AGAIN = "timed again beside"
"""Evidence of a timing that was made once more before the run ended: the kernel that took turns with it, "kernel 9"."""


@dataclass(frozen=True, slots=True)
class TimingFigures(relative.Measured):
    """What a timing comes to: the speed-up over `baseline` with its 95 % interval, as TimingResult works them out."""

    latency_ms: float
    baseline_latency_ms: float
    baseline: str


@dataclass(frozen=True, slots=True)
class TimingResult:
    """Paired latencies, candidate and baseline taken alternately in one session. All figures are computed from the
    pairs."""

    candidate_ms: tuple[float, ...]
    """Latencies of the candidate in milliseconds; pair i is (candidate_ms[i], baseline_ms[i]). Of several workloads it
    is the geometric mean of their pairs i."""
    baseline_ms: tuple[float, ...]
    baseline: str = "eager"
    """What it is compared with."""
    seconds: float = 0.0
    """How long the measurement took."""
    evidence: Mapping[str, str] = field(default_factory=dict)
    """How and under which conditions it was timed."""
    proofs: tuple[CheckRecord, ...] = ()
    """Every check made while timing, held or broken."""
    device_interval: tuple[float, float] | None = None
    """What a second clock says of calls that are short for the first, or what further sessions on a busy machine gave;
    the speed-up's interval covers it too."""
    workloads: tuple[TimedWorkload, ...] = ()
    """A timing at each of the task's workloads, where it has several; its own figures are the geometric means of
    theirs."""
    timeline: Timeline | None = None
    rules: int = 1
    """The version of the judging rules, as in a CheckResult."""
    untrusted: str = ""
    """Why nothing may be decided by it; empty where something may."""

    def __post_init__(self) -> None:
        if not self.candidate_ms or len(self.candidate_ms) != len(self.baseline_ms):
            raise ValueError("timing needs the same number of candidate and baseline samples, at least one")
        if not all(math.isfinite(ms) and ms > 0 for ms in (*self.candidate_ms, *self.baseline_ms)):
            raise ValueError("latencies must be finite and above zero")

    @property
    def latency_ms(self) -> float:
        """Median candidate latency."""
        if self.workloads:
            return statistics.geometric_mean(workload.timing.latency_ms for workload in self.workloads)
        return statistics.median(self.candidate_ms)

    @property
    def baseline_latency_ms(self) -> float:
        """Median baseline latency."""
        if self.workloads:
            return statistics.geometric_mean(workload.timing.baseline_latency_ms for workload in self.workloads)
        return statistics.median(self.baseline_ms)

    @property
    def speedup(self) -> float:
        """Median over pairs of baseline / candidate."""
        if self.workloads:
            return statistics.geometric_mean(workload.timing.speedup for workload in self.workloads)
        return statistics.median(self._ratios())

    @property
    def speedup_interval(self) -> tuple[float, float]:
        """Distribution-free confidence interval (95 % or the widest the sample allows) of the median ratio.

        Of several workloads: their intervals, relative to their speed-ups, combined as of independent measurements.
        """
        if self.workloads:
            return self._combined_interval()
        ratios = sorted(self._ratios())
        low, high = median_ranks(len(ratios))
        second = self.device_interval or (ratios[low], ratios[high])
        return min(ratios[low], *second), max(ratios[high], *second)

    @property
    def noise(self) -> float:
        """Half the interval's width over the speed-up: the relative change that counts as real. Where the interval
        covers two clocks that disagree, the speed-up lies near one of its ends: then the longer side."""
        low, high = self.speedup_interval
        covers_both = any(
            timing.device_interval for timing in (self, *(workload.timing for workload in self.workloads))
        )
        return (max(high - self.speedup, self.speedup - low) if covers_both else (high - low) / 2) / self.speedup

    @property
    def figures(self) -> TimingFigures:
        """All of the above."""
        low, high = self.speedup_interval
        return TimingFigures(
            self.speedup, low, high, self.noise, self.latency_ms, self.baseline_latency_ms, self.baseline
        )

    def beside(self, eager_ms: float | None) -> TimingResult:
        """This alternative's timing as it counts beside a kernel on a GPU beside which eager took `eager_ms`."""
        factor = relative.held_up(eager_ms, relative.baseline_ms(self.speedup, self.latency_ms))
        return self if factor == 1.0 else self._held_up(factor)

    def _held_up(self, factor: float) -> TimingResult:
        """The same with an eager that takes `factor` times as long."""
        low, high = self.device_interval or (0.0, 0.0)
        return replace(
            self,
            baseline_ms=tuple(ms * factor for ms in self.baseline_ms),
            device_interval=(low * factor, high * factor) if self.device_interval else None,
            workloads=tuple(replace(each, timing=each.timing._held_up(factor)) for each in self.workloads),
        )

    def _combined_interval(self) -> tuple[float, float]:
        low, high, speedup = 0.0, 0.0, self.speedup
        for workload in self.workloads:
            its_low, its_high = workload.timing.speedup_interval
            low += math.log(workload.timing.speedup / its_low) ** 2
            high += math.log(its_high / workload.timing.speedup) ** 2
        count = len(self.workloads)
        return speedup / math.exp(math.sqrt(low) / count), speedup * math.exp(math.sqrt(high) / count)

    def _ratios(self) -> list[float]:
        return [base / cand for cand, base in zip(self.candidate_ms, self.baseline_ms, strict=True)]


TAKEN = TimingResult((1.0,), (1.0,))
"""What a thin fold keeps of a timing, beside its figures."""


@dataclass(frozen=True, slots=True)
class TimedWorkload:
    """What was measured at one of a task's workloads; `sizes` by module-level name."""

    sizes: Mapping[str, int | float]
    timing: TimingResult


def median_ranks(n: int) -> tuple[int, int]:
    """Zero-based order-statistic ranks whose interval covers the median with 95 % confidence.

    From the binomial distribution of the count below the median (Conover, Practical Nonparametric Statistics, ch. 3).
    """
    below, rank = 0.0, 0
    for k in range(n // 2 + 1):
        below += math.comb(n, k) / 2.0**n
        if below > 0.025:
            break
        rank = k + 1
    rank = max(0, min(rank - 1, (n - 1) // 2))
    return rank, n - 1 - rank


BUSY_PERCENT = 15
"""Of the processors that others use: from there on a machine is busy, as engine.evaluator.machine.quiet has it."""


def used_by_others(evidence: Mapping[str, str]) -> int | None:
    """How many percent of the processors others used just before a timing, by its evidence; None where it does not
    tell."""
    share = re.match(r"(\d+)%", evidence.get("others before", ""))
    return int(share[1]) if share else None


def is_improvement(new: TimingResult, old: TimingResult) -> bool:
    """True when `new` is faster than `old` by more than the noise of both measurements and of two sessions; never where
    one of them decides nothing."""
    return (
        not (new.untrusted or old.untrusted)
        and relative.between_sessions(new.speedup, new.noise, old.speedup, old.noise).is_faster
    )
