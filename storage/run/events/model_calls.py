"""What is asked of a language model and what comes back, kernels aside."""

from __future__ import annotations

from dataclasses import dataclass

from storage.results.vocabulary import KernelClass
from storage.run.models import CallFailure


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
