"""What a strategy may ask of the loop: a closed set. Knows no method and not how an action is carried out.

A method's own words travel as labels (`optimise`, `judge`, `rewrite`): the loop journals them and never looks at them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from engine.search.llm import Message
from storage.knowledge.records import Revision, WeighedEdge
from storage.run.settings import DepthOutcome, Origin, RunState, StepKind
from storage.run.steering.command_arguments import BEGIN, CONSULT, RANK, REFUSE, TEACH, TUNE


class Expects(StrEnum):
    """What a reply has to bring: a whole source, edits of the kernel that the call is about, text, or a JSON object."""

    SOURCE = "source"
    PATCH = "patch"
    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class NewCandidate:
    """What is recorded of the kernel that a reply brings."""

    origin: Origin
    base_id: str | None
    generation: int
    """Counts kernels within a step index, from 0."""
    title: str
    """The label before the reply's own summary."""
    untitled: str
    """What stands where the reply has no summary."""
    repair: int = 0
    """Counts repairs within a step index; 0 for a kernel that is none."""
    trajectory: int = 0
    """The line of kernels that it belongs to; 0 where a method has one."""
    technique: str = ""
    """What the method chose; empty where the reply's own stands."""
    predicted_gain: float | None = None
    """The factor over the base that the method expects; None where the reply's own stands."""
    second_parent_id: str | None = None
    """The other kernel that it is made from, beside the one the call is about."""


# (the run's context, the action) -> messages. The context is not named: it knows the strategy, which knows actions.
PromptWriter = Callable[[Any, "Ask"], list[Message]]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a JSON reply holds: texts for people, plain JSON values by which the method decides, and sentences about
    what a person should look at in the kernel."""

    fields: Mapping[str, str]
    payload: Mapping[str, Any]
    flags: tuple[str, ...] = ()


# The text of a reply -> what it holds. Raises EditError, with the report for the model.
ReplyReader = Callable[[str], Reading]


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the model."""

    label: str
    """Names the step and the role that answers."""
    index: int
    about: str | None
    """The kernel it is about."""
    expects: Expects
    prompt: PromptWriter
    makes: NewCandidate | None = None
    """None where the reply is no kernel."""
    shows_profile: bool = False
    """Whether the prompt carries a profile."""
    fields: tuple[str, ...] = ()
    """Keys of the object that a JSON reply has to bring; each is one text unless `reads` reads the reply."""
    reads: ReplyReader | None = None
    """Its payload is journaled for the method to decide by."""
    tools: int = 0
    """How often the model may compile, check or profile a kernel of its own before a reply that brings a source, where
    its endpoint has tool calls."""


@dataclass(frozen=True, slots=True)
class Evaluate:
    """Put a kernel through one stage: compile, check, time or profile."""

    stage: StepKind
    index: int
    about: str


@dataclass(frozen=True, slots=True)
class TakeSubmission:
    """Make the oldest kernel that a person has submitted a candidate; `about` is the one it was edited from."""

    index: int
    about: str | None
    base_id: str | None
    generation: int
    trajectory: int = 0


@dataclass(frozen=True, slots=True)
class Refuse:
    """Refuse a kernel that passed: what a model says of it stands together with a measured finding. `reason` tells the
    model and the person both."""

    index: int
    about: str
    reason: str


@dataclass(frozen=True, slots=True)
class Consult:
    """Ask the knowledge base about a kernel: what state it is in, and which techniques are known for that state.

    `state` is a name that something else than the rules found, a model say; empty for what the rules find in the
    kernel's profile. `node` is the technique that made the kernel, where the edges that lead on from it are asked for
    too. The answer is journaled: a strategy reads it from the record, never from the base.
    """

    index: int
    about: str
    state: str = ""
    node: str = ""


@dataclass(frozen=True, slots=True)
class Teach:
    """Put a change of what is known by name into the knowledge base.

    The loop fills in the revision's id, its time and who made it, which a pure strategy cannot know. `about` is the
    kernel that led to it, if one did.
    """

    index: int
    revision: Revision
    about: str | None = None


@dataclass(frozen=True, slots=True)
class Rank:
    """Put drawn kernels, each compiled, into the order in which they are evaluated: by the reward model where that
    ranks better than the order of arrival. The order is journaled: a strategy reads it from the record."""

    index: int
    drawn: tuple[str, ...]
    about: str | None = None


@dataclass(frozen=True, slots=True)
class Tune:
    """Try other numbers for what a kernel declares open to tuning. The loop's own: no strategy asks for it."""

    index: int
    about: str


@dataclass(frozen=True, slots=True)
class Begin:
    """Take what torch.compile generates as the first kernel. The loop's own: no strategy asks for it."""

    index: int
    about: None = None


@dataclass(frozen=True, slots=True)
class Conclude:
    """End the current step index: its kernel is accepted, or nothing of it is and the base stays.

    `reward` is what it is worth by the method's own measure, None where it has none. `weighed` are the edges of the
    graph of techniques that led to it, with their rivals.
    """

    index: int
    outcome: DepthOutcome
    candidate_id: str | None
    base_id: str | None
    reason: str
    reward: float | None = None
    weighed: tuple[WeighedEdge, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    """Begin nothing until a step index at work has ended, or has taken another place. Only where others are at work."""


@dataclass(frozen=True, slots=True)
class Finish:
    """End the run."""

    state: RunState
    reason: str


Step = Ask | Evaluate | TakeSubmission | Refuse | Consult | Teach | Rank | Tune | Begin
Action = Step | Conclude | Wait | Finish


def label(step: Step) -> str:
    """What a step is called in the journal and on screen."""
    match step:
        case Ask():
            return step.label
        case Evaluate():
            return str(step.stage)
        case TakeSubmission():
            return str(StepKind.SUBMIT)
        case Refuse():
            return REFUSE
        case Consult():
            return CONSULT
        case Teach():
            return TEACH
        case Rank():
            return RANK
        case Tune():
            return TUNE
        case Begin():
            return BEGIN
