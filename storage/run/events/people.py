"""What a person is asked, and what becomes of the commands that people send."""

from __future__ import annotations

from dataclasses import dataclass

from storage.run.steering.command_arguments import Fallback
from storage.run.steering.verbs import Command


@dataclass(frozen=True, slots=True)
class QuestionAsked:
    """A call to the model waits for a person's answer. The prompt may change while it waits: the last one counts.

    `expects` is what the reply has to bring: source, patch, text or json; empty in journals from before it was noted.
    """

    step: int
    call: int
    role: str
    depth: int
    candidate_id: str | None
    prompt_blob: str
    expects: str = ""


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
