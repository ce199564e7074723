"""The vocabulary every layer shares: closed sets and the plain records that travel in events. Knows no file."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from storage import relative
from storage.check_records import CheckOutcome, CheckRecord
from storage.command_arguments import AskFirst
from storage.forks import Fork
from storage.models import Options
from storage.policy import Policy
from storage.verbs import Command as Command
from storage.verbs import CommandKind as CommandKind


class KernelClass(StrEnum):
    """Chooses the optimisation guide and the default profiling schedule."""

    MATMUL = "matmul"
    CONVOLUTION = "convolution"
    ATTENTION = "attention"
    REDUCTION = "reduction"
    ACTIVATION = "activation"
    LOSS = "loss"
    OTHER = "other"


class RunState(StrEnum):
    """Where a run stands. LOST is never written: it is what a free lock without a final event means."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    WAITING = "waiting"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"
    LOST = "lost"

    @property
    def is_finished(self) -> bool:
        """True when no engine will work on the run unless a person resumes it."""
        return self in (RunState.FINISHED, RunState.STOPPED, RunState.FAILED)

    @property
    def is_over(self) -> bool:
        """True when no engine works on the run, whether it ended or its engine is gone."""
        return self.is_finished or self is RunState.LOST


ALLOWED_MOVES: Mapping[RunState, frozenset[RunState]] = {
    RunState.STARTING: frozenset({RunState.RUNNING, RunState.FAILED, RunState.STOPPED}),
    RunState.RUNNING: frozenset(
        {RunState.PAUSED, RunState.WAITING, RunState.FINISHED, RunState.STOPPED, RunState.FAILED, RunState.LOST}
    ),
    RunState.PAUSED: frozenset({RunState.RUNNING, RunState.STOPPED, RunState.FAILED, RunState.LOST}),
    RunState.WAITING: frozenset({RunState.RUNNING, RunState.PAUSED, RunState.STOPPED, RunState.FAILED, RunState.LOST}),
    RunState.FINISHED: frozenset({RunState.RUNNING}),
    RunState.STOPPED: frozenset({RunState.RUNNING}),
    RunState.FAILED: frozenset({RunState.RUNNING}),
    RunState.LOST: frozenset({RunState.RUNNING, RunState.STOPPED, RunState.FAILED}),
}


class Verdict(StrEnum):
    """How an evaluation ended. Everything but PASSED carries a message and has no latency."""

    PASSED = "passed"
    COMPILE_ERROR = "compile_error"
    INCORRECT = "incorrect"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    REFUSED = "refused"


# What a kernel did that failed, after its name.
FAILED: Mapping[Verdict, str] = {
    Verdict.COMPILE_ERROR: "does not compile",
    Verdict.INCORRECT: "gives wrong results",
    Verdict.RUNTIME_ERROR: "crashed",
    Verdict.TIMEOUT: "took too long",
    Verdict.OUT_OF_MEMORY: "ran out of memory",
    Verdict.REFUSED: "was refused",
}


class Origin(StrEnum):
    """Which act created a candidate."""

    SYNTHESIS = "synthesis"
    OPTIMISATION = "optimisation"
    REPAIR = "repair"
    MANUAL = "manual"
    IMPORTED = "imported"
    FORKED = "forked"
    TUNED = "tuned"


class StepKind(StrEnum):
    """The loop's moves, in the words shown on screen."""

    SYNTHESISE = "synthesise"
    COMPILE = "compile"
    CHECK = "check"
    TIME = "time"
    PROFILE = "profile"
    DIAGNOSE = "diagnose"
    REPAIR = "repair"
    OPTIMISE = "optimise"
    SUBMIT = "submit"


EVALUATIONS = (StepKind.COMPILE, StepKind.CHECK, StepKind.TIME, StepKind.PROFILE)


class Role(StrEnum):
    """What a model call of CuTeGen is for; other methods have words of their own."""

    SYNTHESISE = "synthesise"
    DIAGNOSE = "diagnose"
    REPAIR = "repair"
    OPTIMISE = "optimise"


class Switch(StrEnum):
    """A person's override of a schedule."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


class DepthOutcome(StrEnum):
    """How one depth ended."""

    ACCEPTED = "accepted"
    GIVEN_UP = "given_up"
    IMPORTED = "imported"


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a run; None means no limit. Time is engine time, not time spent paused or dead."""

    depths: int = 10
    model_calls: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    wall_s: float | None = None
    target_speedup: float | None = None
    stagnation_depths: int | None = None


# Of run.json: raised when a run must go on by the rules that it was made with. 1: profiles are shown one depth earlier.
SETTINGS_VERSION = 2


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompt files that a run began with. `hash` tells all of them, `shipped` those that Tilewright brings.

    `files` are the texts, by name, of a person's pack in `folder`. Runs made before prompts were kept have no hash.
    """

    hash: str = ""
    shipped: str = ""
    folder: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What the pack is called; empty without one."""
        return self.folder.replace("\\", "/").rstrip("/").split("/")[-1]

    @property
    def in_words(self) -> str:
        """For people: the first characters of the hash, and the pack; empty where nothing was kept."""
        if not self.hash or not self.folder:
            return f"shipped, {self.hash[:12]}" if self.hash else ""
        count = f"{len(self.files)} {'file' if len(self.files) == 1 else 'files'}"
        return f"{self.name}, {self.hash[:12]} ({count} in place of the shipped ones, {self.shipped[:12]})"


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What `run.json` fixes when a run starts. `task_source` is the reference with size overrides already in place.

    `device` names the GPU as CUDA_VISIBLE_DEVICES would; empty for the first that is visible. `replay_of` names the run
    whose journal is told once more, `replay_speed` times as fast; nothing is done then. `knowledge` is the base that
    the run asks: off, on (what runs have learned, and the seed), seed, empty (only what this run learns), or the path
    of another one, which is only read. `tune` is how many variants of an accepted kernel's tunables are tried at most.
    `is_example`: a finished run that came with Tilewright; it was made elsewhere and counts in no total.
    With `compiler_hint` the model is shown what torch.compile writes for the task before it writes a first kernel.
    """

    run_id: str
    task_name: str
    task_source: str
    kernel_class: KernelClass
    class_is_proposed: bool
    sizes: Mapping[str, int | float]
    toolchain: str
    model: str
    strategy: str = "cutegen"
    strategy_options: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)
    language: str = "cute"
    device: str = ""
    collect: Switch = Switch.AUTO
    policy: Policy = field(default_factory=Policy)
    model_options: Options = ()
    ask_first: AskFirst = field(default_factory=AskFirst)
    prompts: Prompts = field(default_factory=Prompts)
    knowledge: str = "off"
    recording: str | None = None
    reply_seconds: float = 0.0
    budget: Budget = field(default_factory=Budget)
    tune: int = 0
    compiler_hint: bool = False
    created_at: float = 0.0
    is_demo: bool = False
    is_example: bool = False
    forked_from: Fork | None = None
    replay_of: str | None = None
    replay_speed: float = 1.0
    version: int = SETTINGS_VERSION


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Where a wrong output went wrong. `index` is the first wrong element in row-major order.

    `heat` is the share of wrong elements (0..1) on a grid of at most 16 x 16 cells over the output seen as a matrix
    (rows = product of leading dimensions, columns = last dimension).
    """

    index: tuple[int, ...]
    expected: float
    actual: float
    wrong_count: int
    total_count: int
    max_abs_error: float
    max_rel_error: float
    shape: tuple[int, ...]
    heat: tuple[tuple[float, ...], ...] = ()
    trial: str = ""


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
    """Result of building one source. `diagnostics` is cut for reading; the whole log is in `log`."""

    is_ok: bool
    seconds: float
    diagnostics: str = ""
    log: str = ""
    remarks: tuple[str, ...] = ()
    is_cached: bool = False
    verdict: Verdict = Verdict.PASSED
    proofs: tuple[CheckRecord, ...] = ()
    resources: tuple[KernelResources, ...] = ()

    def __post_init__(self) -> None:
        if self.is_ok is not (self.verdict is Verdict.PASSED):
            raise ValueError("a build is ok exactly when its verdict is passed")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of comparing a candidate with the float64 reference over several trials.

    `max_error` is the largest |candidate - reference64| / (|reference64| + rms(reference64)) over all trials, the
    quantity that `tolerance` bounds; `reference_error` is the same for the reference in its own dtype.
    """

    verdict: Verdict
    seconds: float
    trials: tuple[str, ...] = ()
    max_error: float | None = None
    max_abs_error: float | None = None
    tolerance: float | None = None
    reference_error: float | None = None
    mismatch: Mismatch | None = None
    message: str = ""
    precision: str = ""
    seed: int | None = None
    evidence: Mapping[str, str] = field(default_factory=dict)
    proofs: tuple[CheckRecord, ...] = ()


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


@dataclass(frozen=True, slots=True)
class TimingResult:
    """Paired latencies in milliseconds, candidate and baseline taken alternately in one session.

    Pair i is (candidate_ms[i], baseline_ms[i]). Everything else is computed from the pairs; the interval of the
    speed-up also covers `device_interval`, what a second clock says of calls that are short for the first.

    A task with several workloads has a timing of each in `workloads`; its own figures are the geometric means of
    theirs, and pair i is that of their pairs i.
    """

    candidate_ms: tuple[float, ...]
    baseline_ms: tuple[float, ...]
    baseline: str = "eager"
    seconds: float = 0.0
    evidence: Mapping[str, str] = field(default_factory=dict)
    proofs: tuple[CheckRecord, ...] = ()
    device_interval: tuple[float, float] | None = None
    workloads: tuple[TimedWorkload, ...] = ()

    def __post_init__(self) -> None:
        if not self.candidate_ms or len(self.candidate_ms) != len(self.baseline_ms):
            raise ValueError("timing needs the same number of candidate and baseline samples, at least one")
        if not all(math.isfinite(ms) and ms > 0 for ms in (*self.candidate_ms, *self.baseline_ms)):
            raise ValueError("latencies must be finite and above zero")

    @property
    def latency_ms(self) -> float:
        """Median candidate latency."""
        if self.workloads:
            return statistics.geometric_mean(one.timing.latency_ms for one in self.workloads)
        return statistics.median(self.candidate_ms)

    @property
    def baseline_latency_ms(self) -> float:
        """Median baseline latency."""
        if self.workloads:
            return statistics.geometric_mean(one.timing.baseline_latency_ms for one in self.workloads)
        return statistics.median(self.baseline_ms)

    @property
    def speedup(self) -> float:
        """Median over pairs of baseline / candidate."""
        if self.workloads:
            return statistics.geometric_mean(one.timing.speedup for one in self.workloads)
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
        """Half the interval's width over the speed-up: the relative change that counts as real."""
        low, high = self.speedup_interval
        return (high - low) / 2 / self.speedup

    def _combined_interval(self) -> tuple[float, float]:
        low, high, speedup = 0.0, 0.0, self.speedup
        for one in self.workloads:
            its_low, its_high = one.timing.speedup_interval
            low += math.log(one.timing.speedup / its_low) ** 2
            high += math.log(its_high / one.timing.speedup) ** 2
        count = len(self.workloads)
        return speedup / math.exp(math.sqrt(low) / count), speedup * math.exp(math.sqrt(high) / count)

    def _ratios(self) -> list[float]:
        return [base / cand for cand, base in zip(self.candidate_ms, self.baseline_ms, strict=True)]


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


def is_improvement(new: TimingResult, old: TimingResult) -> bool:
    """True when `new` is faster than `old` by more than the noise of both measurements and of two sessions."""
    return relative.between_sessions(new.speedup, new.noise, old.speedup, old.noise).is_faster


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
    """A profile of one candidate. `summary` is what a model may be shown; `raw` is the whole report for people.

    `report` is the profiler's own file in base64, empty where it keeps none. `ceilings` are the machine's rates by
    name: `memory` in bytes per second, the others (`fp32`, `tf32`, …) in operations per second. `evidence` says how
    and under which conditions it was taken, and under `disturbed` what disturbed it. `lines` are the source lines with
    samples, most first, of `samples` in all; `sass` lists the instructions. All three are empty where the profiler has
    not sampled by line.
    """

    kernel_hash: str
    metrics: tuple[Metric, ...]
    bound: str
    summary: str
    raw: str = ""
    seconds: float = 0.0
    missing: tuple[str, ...] = ()
    advice: tuple[Advice, ...] = ()
    ceilings: Mapping[str, float] = field(default_factory=dict)
    evidence: Mapping[str, str] = field(default_factory=dict)
    report: str = ""
    lines: tuple[SourceLine, ...] = ()
    samples: int = 0
    sass: str = ""

    @property
    def disturbance(self) -> str:
        """What disturbed it, empty if nothing did. A disturbed profile is shown to people and to no model."""
        return self.evidence.get(DISTURBED, "")


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


REACHED = ", raised to what a kernel reached"
LEFT = "waits for a person: "  # how the reason of a run begins that was left because it waits


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What one device is: asked of it, or measured on it. 0 where the device has no such thing, or does not tell.

    Sizes are bytes. Rates are 1e9 per second: `memory_gb_s` read plus written far beyond the caches, `rates_gflop_s` by
    name (`fp32`, `tf32`, `bf16`).

    Attributes:
        architecture: as its compiler calls it: `sm_90a`; of a processor its widest vectors: `avx512`, `avx2`, `sse`.
        processors: multiprocessors of a GPU; of a host the threads that a kernel may use, on `cores` cores.
        l1_bytes: data cache of one core. `l2_bytes`: of one core, or of the whole GPU. `l3_bytes`: shared by cores.
        shared_bytes: shared memory of one multiprocessor, as are `registers`, `warps` and `blocks`.
        block_shared_bytes: the most that one block may ask for.
        has_clusters: whether blocks can be launched in clusters; of `cluster_blocks` at most, 0 where it is not known.
    """

    architecture: str
    processors: int
    memory_gb_s: float
    rates_gflop_s: Mapping[str, float] = field(default_factory=dict)
    cores: int = 0
    vector_bits: int = 0
    l1_bytes: int = 0
    l2_bytes: int = 0
    l3_bytes: int = 0
    shared_bytes: int = 0
    block_shared_bytes: int = 0
    registers: int = 0
    warps: int = 0
    blocks: int = 0
    has_clusters: bool = False
    cluster_blocks: int = 0


@dataclass(frozen=True, slots=True)
class HardwareLimit:
    """Speed of light of one task on one machine: the larger of bytes over bandwidth and operations over peak.

    `facts` is None in runs made before devices were described.
    """

    device: str
    bandwidth_gb_s: float
    peak_gflop_s: float
    min_bytes: int
    min_flop: int
    facts: DeviceFacts | None = None

    def raised_to(self, latency_ms: float) -> HardwareLimit:
        """The limit with both rates raised so far that a kernel of this latency stands exactly on it."""
        factor = self.limit_ms / latency_ms
        return replace(
            self,
            device=f"{self.device.removesuffix(REACHED)}{REACHED}",
            bandwidth_gb_s=self.bandwidth_gb_s * factor,
            peak_gflop_s=self.peak_gflop_s * factor,
        )

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
