"""What a person may ask of a run: the verbs, and one command as it travels. Knows words, not what carries them out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class CommandKind(StrEnum):
    """The steering verbs."""

    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    COLLECT = "collect"
    EXPOSE = "expose"
    ROLL_BACK = "roll_back"
    SET_BASE = "set_base"
    PIN = "pin"
    UNPIN = "unpin"
    HINT = "hint"
    BAN = "ban"
    REQUIRE = "require"
    LIFT = "lift"
    SUBMIT = "submit"
    RETRY = "retry"
    SET_MODEL = "set_model"
    ANSWER = "answer"
    TAKE_OVER = "take_over"
    ASK_FIRST = "ask_first"
    APPROVE = "approve"
    SKIP = "skip"
    SET_CLASS = "set_class"
    SET_BUDGET = "set_budget"


RULES = (CommandKind.BAN, CommandKind.REQUIRE)
RULE_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Command:
    """One steering command as a person asked for it. `argument`: a switch, a candidate id, a hint, a class, limits."""

    command_id: str
    kind: CommandKind
    argument: str
    asked_by: str
    asked_at: float


@dataclass(frozen=True, slots=True)
class Rule:
    """What a person bans or requires until it is lifted; `command_id` names it."""

    command_id: str
    kind: CommandKind
    text: str

    def __str__(self) -> str:
        return f"{'must not use' if self.kind is CommandKind.BAN else 'must use'}: {self.text}"


# What people call each command.
COMMAND_NAME = {
    CommandKind.PAUSE: "pause",
    CommandKind.RESUME: "resume",
    CommandKind.STOP: "stop",
    CommandKind.COLLECT: "collect profiles",
    CommandKind.EXPOSE: "show profiles to the model",
    CommandKind.ROLL_BACK: "roll back",
    CommandKind.SET_BASE: "set base kernel",
    CommandKind.PIN: "pin",
    CommandKind.UNPIN: "unpin",
    CommandKind.HINT: "hint",
    CommandKind.BAN: "must not use",
    CommandKind.REQUIRE: "must use",
    CommandKind.LIFT: "lift rule",
    CommandKind.SUBMIT: "kernel by hand",
    CommandKind.RETRY: "do a step again",
    CommandKind.SET_MODEL: "model",
    CommandKind.ANSWER: "answer",
    CommandKind.TAKE_OVER: "answer calls by hand",
    CommandKind.ASK_FIRST: "ask before steps",
    CommandKind.APPROVE: "approve step",
    CommandKind.SKIP: "skip step",
    CommandKind.SET_CLASS: "kernel class",
    CommandKind.SET_BUDGET: "limits",
}
