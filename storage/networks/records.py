"""The vocabulary of networks: what a capture found, and what happened to it since. Knows no file and no torch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
EAGER, COMPILED = "eager", "torch.compile"
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


Event = CaptureStarted | CaptureProgressed | CaptureEnded | RegionLimited | RegionRun
