"""What is asked of a language model and what comes back, kernels aside."""

from __future__ import annotations

from dataclasses import dataclass

from storage.results.vocabulary import KernelClass
from storage.run.models import CallFailure


@dataclass(frozen=True, slots=True)
class CallSent:
    """A call that may cost money is about to be sent; a ModelCalled or a CallFailed ends it."""

    step: int
    call: int
    """Counts the calls of one step from 0."""
    attempt: int
    """How often this call was sent before."""
    role: str
    depth: int
    candidate_id: str | None
    """The kernel that it is about."""
    model: str
    prompt_blob: str
    expected_tokens: int
    """Estimate of the prompt."""
    expected_cost_usd: float | None
    """Price of the expected tokens; None when it is unknown."""
    output_limit: int | None
    """In tokens; None leaves it to the endpoint."""


@dataclass(frozen=True, slots=True)
class CallFailed:
    """A call gave no usable reply."""

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
    """Whether it may have cost something: it counts as a call then."""
    is_estimated: bool
    """Whether the tokens are counted from characters, not the endpoint's own figures."""
    reply_blob: str | None
    """What came of the reply."""
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: float | None
    seconds: float
    retry_in_s: float | None
    """Seconds until it is sent again; None means that nothing follows."""


@dataclass(frozen=True, slots=True)
class ModelCalled:
    """A paid reply arrived. None means unknown, for tokens and for `cost_usd`: not free."""

    step: int
    call: int
    """Counts the calls of one step from 0."""
    role: str
    depth: int
    candidate_id: str | None
    model: str
    prompt_blob: str
    reply_blob: str
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    """Part of `input_tokens`."""
    reasoning_tokens: int | None
    """Part of `output_tokens`."""
    cost_usd: float | None
    seconds: float
    """From sending to the end of the reply."""
    finish_reason: str
    """stop, length (cut off at the output limit), or what the endpoint said."""
    is_profile_exposed: bool = False
    """Whether the prompt carried a profile."""
    prompt_characters: int = 0
    assumed_tokens: int = 0
    """Estimate for tokens that the endpoint did not count; budgets take it for spent."""


@dataclass(frozen=True, slots=True)
class ClassProposed:
    """The model named the kernel class of a task that did not state one."""

    kernel_class: KernelClass


@dataclass(frozen=True, slots=True)
class DiagnosisWritten:
    """The model's explanation of a failure, before any edit."""

    step: int
    candidate_id: str
    text_blob: str


@dataclass(frozen=True, slots=True)
class ReviewWritten:
    """A reply about a kernel that is no kernel: what a judge or a planner says, as JSON."""

    step: int
    call: int
    label: str
    """The step's name."""
    depth: int
    candidate_id: str
    text_blob: str
    """The reply; kept as it came where it could not be read."""
    summary: str
    """Its first field in one line."""
    problem: str = ""
    """Why it could not be read, so that nothing follows from it."""
    technique: str = ""
    """Name of the change that it advises."""
    predicted_gain: float | None = None
    """The factor over the base that it expects of that change."""
    payload: str = ""
    """What the method decides by, as JSON, where the reply is more than texts."""
    flags: tuple[str, ...] = ()
    """Sentences about what a person should look at in the kernel."""


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
    """What a tool call came to."""

    step: int
    call: int
    number: int
    """Counts the tool calls of one reply, which is `call` of the step, from 0."""
    tool: str
    source_blob: str
    outcome: str
    """A Verdict value, `unreadable`, or `done` where nothing was carried out."""
    summary: str
    """A line for people."""
    text_blob: str
    """What the model was told."""
    seconds: float
