"""The vocabulary of networks: what a capture found, and what happened to it since. Knows no file and no torch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
EAGER, COMPILED, MAX_AUTOTUNE, CUDA_GRAPH = "eager", "torch.compile", "max-autotune", "CUDA graph"
TUNED_GRAPH = "CUDA graph of max-autotune"
"""Ways to call a network."""
REST = "everything else"
"""What of a call belongs to no place: Python, gaps between kernels, work outside modules."""


class NetworkState(StrEnum):
    """Where a capture stands."""

    CAPTURING = "capturing"
    CAPTURED = "captured"
    FAILED = "failed"
    BROKEN_OFF = "broken off"


class Form(StrEnum):
    """What a region is made of: one module, or operators of the exported graph that a module's border may cut."""

    MODULE = "module"
    FUSED = "fused"


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """One tensor as it was met. `dtype` without `torch.`; `low` and `high` are of its finite values, None where it has
    none. `is_constant`: the same values in every call that was seen."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    stride: tuple[int, ...] = ()
    low: float | None = None
    high: float | None = None
    is_constant: bool = False

    @property
    def words(self) -> str:
        """For people: `hidden_states (2, 256, 256) float32`."""
        return f"{self.name} {self.shape} {self.dtype}".strip()


@dataclass(frozen=True, slots=True)
class WorkloadFacts:
    """One workload as it was measured."""

    name: str
    weight: float
    eager_ms: tuple[float, ...]
    """Calls of the network as it is, nothing watching; wall time."""
    profiled_ms: float
    """The call that was watched; wall time, to hold beside `eager_ms`."""
    device_ms: float | None = None
    """Time that kernels of that call took on a GPU; None on a processor."""
    peak_bytes: int | None = None
    """The most memory that a call held on a GPU beyond what was held before; None on a processor."""
    compiled_ms: tuple[float, ...] = ()
    """Calls under torch.compile; empty where it failed, and `compiled_note` says why."""
    compiled_note: str = ""
    graph_breaks: int = 0
    replayed_ms: tuple[float, ...] = ()
    """Calls of the compiled network, replayed as one CUDA graph; empty on a processor and where it cannot be captured,
    and `replayed_note` says why."""
    replayed_note: str = ""
    other_ms: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Calls in ways that a person has asked for, by way: MAX_AUTOTUNE and TUNED_GRAPH; wall time."""
    other_notes: Mapping[str, str] = field(default_factory=dict)
    """Why there are none, by way."""


@dataclass(frozen=True, slots=True)
class ModuleFacts:
    """One module of the tree. The network itself has the path ""."""

    path: str
    kind: str
    parameters: int = 0


@dataclass(frozen=True, slots=True)
class PlaceTime:
    """What one module takes in one call of a workload: with those inside it, and without.

    On a GPU the time of its kernels, on a processor that of its operators and of the Python between them.
    """

    workload: str
    path: str
    calls: int
    inclusive_ms: float
    own_ms: float


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """One kernel that runs in a call under torch.compile, and all places that its operators come from.

    `places` is empty where nothing tells them.
    """

    workload: str
    name: str
    calls: int
    ms: float
    places: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RegionUse:
    """What a region takes in one call of a workload, all its places together.

    `compiled_ms` is the time of the compiler's kernels that touch it; with `is_shared` they also do work of other
    places, so that it is the most that the region may take. None where nothing tells.
    """

    workload: str
    calls: int
    eager_ms: float
    compiled_ms: float | None = None
    is_shared: bool = False


@dataclass(frozen=True, slots=True)
class Region:
    """Equal places of a network: one task."""

    name: str
    form: Form
    kind: str
    """Class of the module; of fused operators their names joined by +."""
    places: tuple[str, ...]
    """Paths of its modules; of fused operators that of the innermost module around each run of them."""
    uses: tuple[RegionUse, ...]
    parts: tuple[str, ...] = ()
    """Of fused operators the modules whose forwards call them."""
    operators: Mapping[str, int] = field(default_factory=dict)
    """Operators of one call, by name with counts; those that only change a tensor's view are left out."""
    inputs: tuple[TensorFacts, ...] = ()
    outputs: tuple[TensorFacts, ...] = ()
    parameters: tuple[TensorFacts, ...] = ()
    flop: int = 0
    """Of one call, by PyTorch's formulas: products alone."""
    min_bytes: int = 0
    """That one call must read and write: inputs, parameters and outputs once."""
    kernel_class: str = ""
    before: tuple[str, ...] = ()
    """Operators whose results it reads."""
    after: tuple[str, ...] = ()
    """Operators that read its results."""
    inside: str = ""
    """The smallest region that holds it; empty where none does."""
    task: str = ""
    """Its task's file inside the network's folder; empty where there is none, and `reason` says why."""
    reason: str = ""
    recorded_bytes: int = 0
    """Of the inputs, outputs and weights that were kept."""
    own_error: float | None = None
    """Largest error of the network's own arithmetic there against float64, over the largest value."""
    text_error: float | None = None
    """Largest difference between the task's text and the network's module on recorded inputs, over the largest."""
    takes: Any = None
    """Of modules: the form of (args, kwargs) of a call, as packages have it; its tensors are numbered as the task's
    inputs are. None where it holds what a table cannot."""
    gives: Any = None
    """Of modules: the form of what a call returns: the task's outputs, numbered, then its inputs."""


@dataclass(frozen=True, slots=True)
class Network:
    """What a capture found."""

    name: str
    entry: str
    """As it was given: `app.py:make` or `hf:CONFIG`."""
    mode: str
    device: str
    """`cpu`, or a GPU's name."""
    seed: int
    captured_at: float
    seconds: float
    versions: Mapping[str, str]
    workloads: tuple[WorkloadFacts, ...]
    modules: tuple[ModuleFacts, ...]
    times: tuple[PlaceTime, ...]
    regions: tuple[Region, ...]
    kernels: tuple[CompiledKernel, ...] = ()
    weights: str = ""
    """The user's checkpoint, or the file in the network's folder that holds them."""
    notes: tuple[str, ...] = ()
    """Sentences on what could not be done and why."""
    folder: str = ""
    """Where the capture was begun: a relative `entry` is looked for there."""
    batch: int = 1
    tokens: int = 256
    """Of the inputs of a transformers configuration."""
    is_example: bool = False
    """Captured elsewhere, and opened here without its program and its recorded tensors."""


@dataclass(frozen=True, slots=True)
class CaptureStarted:
    """A capture works on the folder."""

    entry: str
    mode: str
    device: str
    pid: int = 0


@dataclass(frozen=True, slots=True)
class CaptureProgressed:
    """What a capture does now, in words."""

    words: str


@dataclass(frozen=True, slots=True)
class CaptureEnded:
    """No capture works on it any more; `reason` is empty where it is whole."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class RegionLimited:
    """What the hardware allows for one call of a region."""

    region: str
    limit_ms: float
    bound_by: str
    device: str


@dataclass(frozen=True, slots=True)
class RegionRun:
    """A run was started for a region."""

    region: str
    run_id: str


class Verdict(StrEnum):
    """What came of putting a region's kernel back into the network."""

    KEPT = "kept"
    NO_GAIN = "no gain in place"
    WRONG = "changes results"
    NOT_ENGAGED = "not engaged"
    UNFIT = "cannot be put back"
    CRASHED = "crashed"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class ChosenKernel:
    """A kernel that may be put back. `speedup` over eager PyTorch and its interval are the run's own, in isolation."""

    region: str
    run_id: str
    candidate_id: str
    speedup: float | None = None
    low: float | None = None
    high: float | None = None


ELSEWHERE = "of the same operators in other places of the network"


@dataclass(frozen=True, slots=True)
class Engaged:
    """How often a region's kernel was seen in one traced call of the network, and how often it should be: calls of
    the kind that it was made for. `others` are calls of the same modules with other sizes or arguments, which are not
    its own. More are seen than are due where the operators of a fused region also stand within a larger one: the
    kernel computes them there as well."""

    workload: str
    expected: int
    seen: int
    kernels: int | None = None
    """Launches on the GPU within these calls; None on a processor."""
    others: int = 0
    why: str = ""
    """Where calls do not reach the kernel, what the package says of it."""

    @property
    def words(self) -> str:
        """`rows: 0 of 8 calls reach the kernel, beside 2 calls of another kind: x is no tensor`."""
        more = f", and {self.more} more {ELSEWHERE}" if self.more else ""
        beside = f", beside {self.others} call{'' if self.others == 1 else 's'} of another kind" if self.others else ""
        why = f": {self.why}" if self.why else ""
        return f"{self.workload}: {self.reached:,} of {self.expected:,} calls reach the kernel{more}{beside}{why}"

    @property
    def reached(self) -> int:
        """Of the calls that are due those that were seen."""
        return min(self.seen, self.expected)

    @property
    def more(self) -> int:
        """Calls beyond those that are due."""
        return self.seen - self.reached

    @property
    def is_whole(self) -> bool:
        """Whether it took all calls, with launches of its own where it has a GPU."""
        return self.seen >= self.expected > 0 and self.kernels != 0


@dataclass(frozen=True, slots=True)
class Parity:
    """One output of the network on inputs that no kernel has seen, against the same network in more exact arithmetic.

    Errors are the largest, over the output's largest value; `allowed` is what the kernels may have. Of logits also the
    share of places whose largest one is the same as in the network as it was.
    """

    workload: str
    output: str
    error: float
    own_error: float
    """Of the network as it was."""
    allowed: float
    exact: str
    """What both were compared with: float64, float32, or the network as it was."""
    same_tokens: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the error is no larger than allowed; that of a NaN is."""
        return self.error <= self.allowed


@dataclass(frozen=True, slots=True)
class Speed:
    """Two ways to call the network, timed in turns. The two times are medians of all calls, the speed-up is the median
    over pairs of calls with its 95 % interval: told of a time is `paired_ms`, which agrees with it."""

    workload: str
    before: str
    """How it is called: eager, torch.compile and so on."""
    after: str
    before_ms: float
    after_ms: float
    speedup: float
    low: float
    high: float
    pairs: int
    before_bytes: int | None = None
    """The most memory that a call holds on a GPU beyond what was held before; None on a processor."""
    after_bytes: int | None = None

    @property
    def paired_ms(self) -> float:
        """Milliseconds of the second way by the speed-up over the first: the median of its calls need not agree with
        that, within the noise."""
        return self.before_ms / self.speedup


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a kept kernel brings to the others: the network with all of them, over the network without this one."""

    region: str
    speedup: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SearchStarted:
    """A suite searches kernels for regions."""

    suite: str


@dataclass(frozen=True, slots=True)
class ProofStarted:
    """Kernels are put back and measured in the network. `number` is the proof's, from 1."""

    number: int
    kernels: tuple[ChosenKernel, ...]
    without: tuple[str, ...] = ()
    """Regions that a person has left out."""
    ways: tuple[str, ...] = (EAGER, COMPILED)
    """Ways to call the network that are measured."""
    measured_with: Mapping[str, str] = field(default_factory=dict)
    """What figures depend on beside these, by name: versions as they are, files by a digest. Where one of them is
    another, nothing that was measured is gone on with."""


@dataclass(frozen=True, slots=True)
class ProofProgressed:
    """What a proof does now, in words; `region` where it tries a kernel, which is to blame if the process dies."""

    words: str
    region: str = ""


@dataclass(frozen=True, slots=True)
class OriginalTimed:
    """The network as it is, called in one way: `ms` is eager PyTorch's median by the ratio of both, timed in turns, so
    that times of ways can be compared. `note` says why it could not be called so."""

    workload: str
    way: str
    ms: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class PartMeasured:
    """A part of a trial or of the stack's measurement, written down as soon as it is measured: a proof that is gone on
    with does not measure it again. What is None was not part of it; parts of one step and workload add up."""

    step: str
    workload: str
    note: str = ""
    """Why it cannot be measured."""
    engaged: Mapping[str, Engaged] | None = None
    """By region."""
    parity: tuple[Parity, ...] | None = None
    speed: Speed | None = None


@dataclass(frozen=True, slots=True)
class RegionTried:
    """One region's kernel put into the network beside those that were kept before it (`beside`)."""

    region: str
    verdict: Verdict
    why: str
    beside: tuple[str, ...] = ()
    engaged: tuple[Engaged, ...] = ()
    parity: tuple[Parity, ...] = ()
    speeds: tuple[Speed, ...] = ()
    """Before: with those beside it alone. After: with this one too."""


@dataclass(frozen=True, slots=True)
class StackMeasured:
    """The network with all kernels that were kept, against the network as it was."""

    kept: tuple[str, ...]
    speeds: tuple[Speed, ...]
    """Each way against the same way."""
    best: tuple[Speed, ...]
    """The fastest way with the kernels against the fastest without, by workload."""
    parity: tuple[Parity, ...] = ()
    engaged: tuple[Engaged, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    greedy: str = ""
    """Of a network that generates text: how many tokens of a greedy continuation are the same."""
    not_with_kernels: Mapping[str, str] = field(default_factory=dict)
    """Ways that could not be measured with the kernels, and why."""


@dataclass(frozen=True, slots=True)
class ProofStopAsked:
    """Somebody wants the proof that is at work to stop."""


@dataclass(frozen=True, slots=True)
class ProofEnded:
    """No proof is at work; `reason` is empty where it is whole."""

    reason: str = ""


Event = (
    CaptureStarted
    | CaptureProgressed
    | CaptureEnded
    | RegionLimited
    | RegionRun
    | SearchStarted
    | ProofStarted
    | ProofProgressed
    | OriginalTimed
    | PartMeasured
    | RegionTried
    | StackMeasured
    | ProofStopAsked
    | ProofEnded
)
