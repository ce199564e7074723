"""What happens in a run, one frozen record per kind of event. Knows the vocabulary, not the files it is written to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from storage.command_arguments import Fallback
from storage.evaluation_results import CheckResult, CompileResult, TimingResult, Tunable
from storage.hardware_limit import HardwareLimit
from storage.knowledge.records import Advised as Advised
from storage.knowledge.records import Bottleneck, KnownEdge, State, ToldRule, WeighedEdge
from storage.models import CallFailure
from storage.profile_results import ProfileResult
from storage.records import Budget, DepthOutcome, KernelClass, Origin, RunState
from storage.verbs import Command


@dataclass(frozen=True, slots=True)
class RunStarted:
    """First event of every run; the settings themselves are in run.json."""

    run_id: str
    task_name: str


@dataclass(frozen=True, slots=True)
class EngineStarted:
    """An engine process took the run's lock. `lost_events` were written after the last one it found in the journal."""

    pid: int
    is_resumed: bool
    lost_events: int = 0


@dataclass(frozen=True, slots=True)
class LimitMeasured:
    """The task's speed of light on this machine."""

    limit: HardwareLimit


@dataclass(frozen=True, slots=True)
class BaselineMeasured:
    """Another baseline, timed against eager in one session: `result` has it in the candidate's place.

    `result` is None where it cannot be had; `failure` says why.
    """

    name: str
    result: TimingResult | None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class CompilerShown:
    """What torch.compile writes for the task, shown to the model from here on; `failure` says why there is nothing."""

    source_blob: str | None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A move of the loop began. After a crash the same step number starts again."""

    step: int
    kind: str
    depth: int
    candidate_id: str | None


@dataclass(frozen=True, slots=True)
class StepFinished:
    """A step ended. `outcome` of a call: created, written; patch_failed, unreadable where the reply could not be used.

    Of a submission it is created, of a compile, a check or a timing a Verdict value, of a profile profiled or
    unavailable, of a consultation answered, of teaching taught. dropped and skipped: a person broke the step off, or
    said no to it.
    """

    step: int
    kind: str
    seconds: float
    outcome: str


@dataclass(frozen=True, slots=True)
class CallSent:
    """A call that may cost money is about to be sent; a ModelCalled or a CallFailed ends it.

    `attempt` counts what was sent for this call before. `expected_tokens` is an estimate of the prompt, and
    `expected_cost_usd` its price, None when that is unknown. `output_limit` None leaves it to the endpoint.
    """

    step: int
    call: int
    attempt: int
    role: str
    depth: int
    candidate_id: str | None
    model: str
    prompt_blob: str
    expected_tokens: int
    expected_cost_usd: float | None
    output_limit: int | None


@dataclass(frozen=True, slots=True)
class CallFailed:
    """A call gave no usable reply. What came of it is in `reply_blob`; `retry_in_s` None means that nothing follows.

    `is_charged` says that it may have cost something: it counts as a call. With `is_estimated` the tokens are not the
    endpoint's own figures but counted from characters.
    """

    step: int
    call: int
    attempt: int
    role: str
    depth: int
    candidate_id: str | None
    model: str
    prompt_blob: str
    failure: CallFailure
    reason: str
    is_charged: bool
    is_estimated: bool
    reply_blob: str | None
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: float | None
    seconds: float
    retry_in_s: float | None


@dataclass(frozen=True, slots=True)
class ModelCalled:
    """A paid reply arrived. `call` counts the calls of one step from 0.

    None means unknown, for tokens and for `cost_usd`: not free. `assumed_tokens` is an estimate for tokens
    that the endpoint did not count; budgets take it for spent.
    """

    step: int
    call: int
    role: str
    depth: int
    candidate_id: str | None
    model: str
    prompt_blob: str
    reply_blob: str
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: float | None
    seconds: float
    finish_reason: str
    is_profile_exposed: bool = False
    prompt_characters: int = 0
    assumed_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ClassProposed:
    """The model named the kernel class of a task that did not state one."""

    kernel_class: KernelClass


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
class DiagnosisWritten:
    """The model's explanation of a failure, before any edit."""

    step: int
    candidate_id: str
    text_blob: str


@dataclass(frozen=True, slots=True)
class ReviewWritten:
    """A reply about a kernel that is no kernel: what a judge or a planner says, as JSON. `label` is the step's name.

    `summary` is its first field in one line. `problem` says why a reply could not be read; its text is kept as it came,
    and nothing follows from it. `technique` and `predicted_gain` are of the change that it advises, as of a candidate.
    `payload` is what the method decides by, as JSON, where the reply is more than texts; `flags` are sentences about
    what a person should look at in the kernel.
    """

    step: int
    call: int
    label: str
    depth: int
    candidate_id: str
    text_blob: str
    summary: str
    problem: str = ""
    technique: str = ""
    predicted_gain: float | None = None
    payload: str = ""
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QuestionAsked:
    """A call to the model waits for a person's answer. The prompt may change while it waits: the last one counts."""

    step: int
    call: int
    role: str
    depth: int
    candidate_id: str | None
    prompt_blob: str


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """A step waits for a yes; after `after_s` seconds of silence the fallback holds, unless it is never."""

    step: int
    kind: str
    depth: int
    candidate_id: str | None
    fallback: Fallback
    after_s: float


@dataclass(frozen=True, slots=True)
class ApprovalSettled:
    """The time for a yes is over and silence has been counted."""

    step: int
    is_given: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Diverged:
    """A replayed run left the path of its recording. `is_bridged` says whether a reply could be found all the same."""

    step: int
    call: int
    role: str
    candidate_id: str | None
    is_bridged: bool
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
class Consulted:
    """What the knowledge base answered about a kernel. Strategies read only this, never the base.

    `state` is empty, and `bottleneck` None, where nothing is known of the kernel's state; `why` says so. `metrics`
    decided it. `found` begins with what promises most. `mark` names exactly what the base had read. `states` are those
    that the base knows, told where the rules leave the kernel's state open; `others` are techniques of other states, by
    name. `edges` lead on from the technique that made the kernel, told where the method walks the graph of techniques;
    the blob holds examples of them, by target, as JSON.
    """

    step: int
    depth: int
    candidate_id: str
    state: str
    bottleneck: Bottleneck | None
    state_confidence: float
    found: tuple[Advised, ...]
    mark: str
    secondary: tuple[str, ...] = ()
    why: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    states: tuple[State, ...] = ()
    others: tuple[str, ...] = ()
    edges: tuple[KnownEdge, ...] = ()
    examples_blob: str = ""


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


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """The model asks, within its turn, to compile, check or profile a kernel of its own; a ToolAnswered ends it.

    `number` counts the tool calls of one reply, which is `call` of the step, from 0."""

    step: int
    call: int
    number: int
    tool: str
    depth: int
    candidate_id: str | None
    source_blob: str


@dataclass(frozen=True, slots=True)
class ToolAnswered:
    """What a tool call came to. `outcome` is a Verdict value, `unreadable`, or `done` where nothing was carried out;
    `summary` is a line for people, `text_blob` what the model was told."""

    step: int
    call: int
    number: int
    tool: str
    source_blob: str
    outcome: str
    summary: str
    text_blob: str
    seconds: float


@dataclass(frozen=True, slots=True)
class RulesTold:
    """Failure rules that the writers of kernels are told from this step on, in the order of the prompt, until others
    are told; none where no rule holds any more. `mark` names exactly what the knowledge base had read."""

    step: int
    depth: int
    rules: tuple[ToldRule, ...]
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Taught:
    """The run has changed what is known by name. `revision_blob` is the whole revision as JSON."""

    step: int
    depth: int
    revision_id: str
    summary: str
    revision_blob: str


@dataclass(frozen=True, slots=True)
class DepthFinished:
    """A depth ended. When given up, `candidate_id` is the last attempt (or None) and the base stays.

    `is_best`: the accepted kernel is the fastest of the run so far. Readers work out the best from the timings instead,
    since older engines wrote it only for a gain beyond the noise. `reward` is what it is worth by the method's own
    measure. `weighed` are the edges that led to it, and their rivals, in a method that walks the graph of techniques.
    """

    step: int
    depth: int
    outcome: DepthOutcome
    candidate_id: str | None
    base_id: str | None
    is_profile_exposed: bool
    is_best: bool
    reason: str
    reward: float | None = None
    weighed: tuple[WeighedEdge, ...] = ()


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
class BudgetChanged:
    """A person set other limits; they hold from here on."""

    budget: Budget


@dataclass(frozen=True, slots=True)
class RunEnded:
    """Final event of an engine's work: FINISHED, STOPPED or FAILED. A resume may follow it.

    `best_id` is the fastest correct kernel; as for `is_best` of a depth, readers work it out from the timings.
    """

    state: RunState
    reason: str
    best_id: str | None
    error_blob: str | None = None


Event = (
    RunStarted
    | EngineStarted
    | LimitMeasured
    | BaselineMeasured
    | CompilerShown
    | StepStarted
    | StepFinished
    | CallSent
    | CallFailed
    | ModelCalled
    | ClassProposed
    | CandidateCreated
    | PatchTried
    | AttemptFailed
    | DiagnosisWritten
    | ReviewWritten
    | QuestionAsked
    | ApprovalAsked
    | ApprovalSettled
    | Diverged
    | Imported
    | Compiled
    | Checked
    | Timed
    | Profiled
    | ProfileFailed
    | SweepStarted
    | VariantCompiled
    | VariantChecked
    | VariantTimed
    | Consulted
    | Ranked
    | ToolCalled
    | ToolAnswered
    | RulesTold
    | Taught
    | DepthFinished
    | CommandAcknowledged
    | CommandEffective
    | CommandRefused
    | StateChanged
    | BudgetWarned
    | BudgetChanged
    | RunEnded
)
