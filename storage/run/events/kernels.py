"""What becomes of a kernel: written, patched, built, checked, timed, profiled, tuned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult, Tunable
from storage.results.profile_results import ProfileResult
from storage.run.settings import Origin


@dataclass(frozen=True, slots=True)
class CandidateCreated:
    """A kernel source exists. Parent: the source it was edited from. Base: the kernel the depth started from.

    `flags` are sentences about what a person should look at in the edit, whatever the evaluation says. `technique` is
    the name of the change that it makes, `predicted_gain` the factor over the base that is expected of it.
    `trajectory` is the line of kernels that it belongs to; 0 where a method has one, and before the first begins.
    `second_parent_id` is the other source of a crossover, which the first parent's diff does not tell.
    """

    step: int
    candidate_id: str
    parent_id: str | None
    base_id: str | None
    depth: int
    generation: int
    repair: int
    origin: Origin
    source_blob: str
    diff_blob: str | None
    lines_added: int
    lines_removed: int
    summary: str
    flags: tuple[str, ...] = ()
    technique: str = ""
    predicted_gain: float | None = None
    trajectory: int = 0
    second_parent_id: str | None = None


@dataclass(frozen=True, slots=True)
class PatchTried:
    """One patch format tried. Kept whether it applied or not.

    `rung` is its name: edits, reask, search_replace or rewrite.
    `form` says what the reply offered and where in it that was found; empty when it offered nothing.
    """

    step: int
    call: int
    candidate_id: str | None
    rung: str
    is_applied: bool
    edit_count: int
    reason: str
    edits_blob: str | None
    form: str = ""


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
    """The order in which kernels that were drawn for one step index are evaluated; `candidates` is that of arrival.

    `scores` are the reward model's, one for each of `candidates`, none where it does not rank; `why` says why.
    `correlation` is its rank correlation with the rewards of `kernels` earlier kernels, `arrival` that of their order
    of arrival; None where they cannot be told.
    """

    step: int
    depth: int
    candidates: tuple[str, ...]
    order: tuple[str, ...]
    scores: tuple[float, ...]
    kernels: int
    correlation: float | None
    arrival: float | None
    why: str
