"""What becomes of a kernel: written, patched, built, checked, timed, profiled, tuned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from storage.results.deployment import Deployment
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult, Tunable
from storage.results.profile_results import ProfileResult
from storage.run.settings import Origin


@dataclass(frozen=True, slots=True)
class CandidateCreated:
    """A kernel source exists."""

    step: int
    candidate_id: str
    parent_id: str | None
    """The source it was edited from."""
    base_id: str | None
    """The kernel that its step index started from."""
    depth: int
    generation: int
    """Counts kernels within a step index, from 0."""
    repair: int
    """Counts repairs within a step index; 0 for a kernel that is none."""
    origin: Origin
    source_blob: str
    diff_blob: str | None
    lines_added: int
    lines_removed: int
    summary: str
    flags: tuple[str, ...] = ()
    """Sentences about what a person should look at in the edit, whatever the evaluation says."""
    technique: str = ""
    """Name of the change that it makes."""
    predicted_gain: float | None = None
    """The factor over the base that is expected of it."""
    trajectory: int = 0
    """The line of kernels that it belongs to; 0 where a method has one, and before the first begins."""
    second_parent_id: str | None = None
    """The other source of a crossover, which the first parent's diff does not tell."""


@dataclass(frozen=True, slots=True)
class PatchTried:
    """One patch format tried. Kept whether it applied or not."""

    step: int
    call: int
    """Which call of the step brought it, from 0."""
    candidate_id: str | None
    """The kernel that was to be edited."""
    rung: str
    """Name of the format: edits, reask, search_replace or rewrite."""
    is_applied: bool
    edit_count: int
    reason: str
    """Why it did not apply."""
    edits_blob: str | None
    form: str = ""
    """What the reply offered and where in it that was found; empty when it offered nothing."""


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """A technique that the method had chosen for a kernel brought none: nothing of the replies could be used."""

    step: int
    depth: int
    candidate_id: str
    technique: str
    predicted_gain: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Imported:
    """What another system recorded about a candidate. Not measured here, and never mixed with what is."""

    candidate_id: str
    file: str
    status: str
    latency_ms: float | None
    baseline_latency_ms: float | None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A build ended."""

    step: int
    candidate_id: str
    result: CompileResult
    log_blob: str | None


@dataclass(frozen=True, slots=True)
class Checked:
    """A comparison with the reference ended."""

    step: int
    candidate_id: str
    result: CheckResult


@dataclass(frozen=True, slots=True)
class Timed:
    """A correct candidate was timed against the baseline."""

    step: int
    candidate_id: str
    result: TimingResult


@dataclass(frozen=True, slots=True)
class Profiled:
    """A profile was collected. Whether a model ever sees it is a matter of ModelCalled.is_profile_exposed."""

    step: int
    candidate_id: str
    result: ProfileResult
    raw_blob: str | None
    report_blob: str | None = None
    sass_blob: str | None = None


@dataclass(frozen=True, slots=True)
class ProfileFailed:
    """No profile could be had; the run goes on without it."""

    step: int
    candidate_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class DeploymentSeen:
    """What is told of a kernel's deployment, looked at once before the run ends with it as its best."""

    candidate_id: str
    result: Deployment


@dataclass(frozen=True, slots=True)
class SweepStarted:
    """A sweep over the numbers that a kernel declares open to tuning began: at most `most` variants are built."""

    step: int
    depth: int
    candidate_id: str
    tunables: tuple[Tunable, ...]
    most: int


@dataclass(frozen=True, slots=True)
class VariantCompiled:
    """A variant of the kernel of a sweep was built: the same source with `values`. `number` counts them from 1."""

    step: int
    candidate_id: str
    number: int
    values: Mapping[str, int]
    result: CompileResult


@dataclass(frozen=True, slots=True)
class VariantChecked:
    """A variant was compared with the reference, or failed while it was timed. Number 0 is the kernel as written."""

    step: int
    candidate_id: str
    number: int
    result: CheckResult


@dataclass(frozen=True, slots=True)
class VariantTimed:
    """A variant was timed against the baseline: briefly, to choose which are timed as any kernel is. Number 0 is the
    kernel as it was written, timed once more beside them."""

    step: int
    candidate_id: str
    number: int
    is_brief: bool
    result: TimingResult


@dataclass(frozen=True, slots=True)
class Ranked:
    """The order in which kernels that were drawn for one step index are evaluated."""

    step: int
    depth: int
    candidates: tuple[str, ...]
    """In the order of their arrival."""
    order: tuple[str, ...]
    scores: tuple[float, ...]
    """The reward model's, one for each of `candidates`; none where it does not rank."""
    kernels: int
    """How many earlier kernels the correlations are taken over."""
    correlation: float | None
    """Rank correlation of the scores of earlier kernels with their rewards; None where it cannot be told."""
    arrival: float | None
    """The same correlation of their order of arrival."""
    why: str
    """Why it ranks, or does not."""
