"""What happens in a run, one frozen record per kind of event. Knows the vocabulary, not the files it is written to."""

from __future__ import annotations

from dataclasses import dataclass

from storage.records import (
    CheckResult,
    Command,
    CompileResult,
    DepthOutcome,
    HardwareLimit,
    KernelClass,
    Origin,
    ProfileResult,
    Role,
    RunState,
    StepKind,
    TimingResult,
)


@dataclass(frozen=True, slots=True)
class RunStarted:
    """First event of every run; the settings themselves are in run.json."""

    run_id: str
    task_name: str


@dataclass(frozen=True, slots=True)
class EngineStarted:
    """An engine process took the run's lock."""

    pid: int
    is_resumed: bool


@dataclass(frozen=True, slots=True)
class LimitMeasured:
    """The task's speed of light on this machine."""

    limit: HardwareLimit


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A move of the loop began. After a crash the same step number starts again."""

    step: int
    kind: StepKind
    depth: int
    candidate_id: str | None


@dataclass(frozen=True, slots=True)
class StepFinished:
    """A move ended; `outcome` is a Verdict value or one of created, patch_failed, written, accepted, given_up."""

    step: int
    kind: StepKind
    seconds: float
    outcome: str


@dataclass(frozen=True, slots=True)
class ModelCalled:
    """A paid reply arrived. `call` counts the calls of one step from 0. `cost_usd` None means unknown, not free."""

    step: int
    call: int
    role: Role
    depth: int
    candidate_id: str | None
    model: str
    prompt_blob: str
    reply_blob: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost_usd: float | None
    seconds: float
    finish_reason: str
    is_profile_exposed: bool = False


@dataclass(frozen=True, slots=True)
class ClassProposed:
    """The model named the kernel class of a task that did not state one."""

    kernel_class: KernelClass


@dataclass(frozen=True, slots=True)
class CandidateCreated:
    """A kernel source exists. Parent: the source it was edited from. Base: the kernel the depth started from.

    Flags are sentences about its text that a person should read before trusting the change.
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


@dataclass(frozen=True, slots=True)
class PatchTried:
    """One rung of the patch ladder: edits, reask, search_replace or rewrite. Kept whether it applied or not."""

    step: int
    call: int
    candidate_id: str | None
    rung: str
    is_applied: bool
    edit_count: int
    reason: str
    edits_blob: str | None


@dataclass(frozen=True, slots=True)
class DiagnosisWritten:
    """The model's explanation of a failure, before any edit."""

    step: int
    candidate_id: str
    text_blob: str


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


@dataclass(frozen=True, slots=True)
class ProfileFailed:
    """No profile could be had; the run goes on without it."""

    step: int
    candidate_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class DepthFinished:
    """A depth ended. When given up, `candidate_id` is the last attempt (or None) and the base stays."""

    step: int
    depth: int
    outcome: DepthOutcome
    candidate_id: str | None
    base_id: str | None
    is_profile_exposed: bool
    is_best: bool
    reason: str


@dataclass(frozen=True, slots=True)
class CommandAcknowledged:
    """The engine has read the command."""

    command: Command
    step: int


@dataclass(frozen=True, slots=True)
class CommandEffective:
    """The command changes what the engine does from this step on."""

    command_id: str
    step: int
    note: str


@dataclass(frozen=True, slots=True)
class CommandRefused:
    """The command cannot be obeyed; `reason` says why and what would work."""

    command_id: str
    step: int
    reason: str


@dataclass(frozen=True, slots=True)
class StateChanged:
    """The run moved to another state. `reason` is written for the person who looks at the run."""

    state: RunState
    reason: str


@dataclass(frozen=True, slots=True)
class BudgetWarned:
    """Four fifths of a limit are used."""

    limit: str
    used: float
    allowed: float


@dataclass(frozen=True, slots=True)
class RunEnded:
    """Final event of an engine's work: FINISHED, STOPPED or FAILED. A resume may follow it."""

    state: RunState
    reason: str
    best_id: str | None
    error_blob: str | None = None


Event = (
    RunStarted
    | EngineStarted
    | LimitMeasured
    | StepStarted
    | StepFinished
    | ModelCalled
    | ClassProposed
    | CandidateCreated
    | PatchTried
    | DiagnosisWritten
    | Compiled
    | Checked
    | Timed
    | Profiled
    | ProfileFailed
    | DepthFinished
    | CommandAcknowledged
    | CommandEffective
    | CommandRefused
    | StateChanged
    | BudgetWarned
    | RunEnded
)
