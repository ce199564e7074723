"""What a person may ask of a run: the table of verbs, and one command as it travels. Knows words, not what carries them
out.

All that tells one verb from another stands in its row, but for what a page says: command line, pages, engine and index
read it there. What a verb sets is folded by `steering_state.py`; whether it makes sense now is for the engine to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, auto

from storage.codec import EpochSeconds


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


class Takes(StrEnum):
    """What an argument has to be: `commands.py` checks it, `command_arguments.py` reads it."""

    NOTHING = auto()
    KERNEL = auto()
    TEXT = auto()
    SENTENCE = auto()
    RULE = auto()
    SWITCH = auto()
    KERNEL_CLASS = auto()
    LIMITS = auto()
    MODEL = auto()
    MODEL_AND_STEP = auto()
    CALLS = auto()
    APPROVAL_RULE = auto()
    WAITING_STEP = auto()
    SUBMISSION = auto()
    ANSWER = auto()


class Moment(StrEnum):
    """When an engine takes a command up: at once, whatever is in flight; between two steps, which may break off a reply
    that is coming in; or it is in force only once a prompt or a step has carried it."""

    AT_ONCE = auto()
    BREAKS_REPLY = auto()
    BETWEEN_STEPS = auto()
    CARRIED = auto()


class Offered(StrEnum):
    """In which state of a run a verb is offered: at work; held (paused or waiting); either of both; or also while no
    engine works on it: the one that resumes the run takes it up."""

    AT_WORK = auto()
    HELD = auto()
    WITH_ENGINE = auto()
    ALWAYS = auto()


class Result(StrEnum):
    """Where it can be seen later what a command has led to."""

    NONE = auto()
    DEPTH = auto()
    KERNEL = auto()
    CALL = auto()
    PROMPTS = auto()
    PROFILE_IN_PROMPT = auto()


RULES = (CommandKind.BAN, CommandKind.REQUIRE)
RULE_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Verb:
    """A row of the table of verbs. One without `help` shares the line of the one before it on the command line."""

    kind: CommandKind
    takes: Takes
    name: str
    """What lists call it."""
    usage: str
    """Its argument, on the command line."""
    help: str
    """What it does, on the command line."""
    moment: Moment = Moment.BETWEEN_STEPS
    offered: Offered = Offered.WITH_ENGINE
    result: Result = Result.NONE
    in_replay: bool = False
    """A replay takes it too."""
    ends_wait: bool = True
    """A run that waits for a person goes on."""
    keeps_step: bool = False
    """The step that waits for a yes stays the next one."""
    reopens: bool = False
    """A run that has finished may go on because of it."""


_TABLE = (
    Verb(
        CommandKind.PAUSE, Takes.NOTHING, "pause", "", "takes effect after the current step",
        moment=Moment.BREAKS_REPLY, offered=Offered.AT_WORK, in_replay=True, ends_wait=False,
    ),
    Verb(CommandKind.RESUME, Takes.NOTHING, "resume", "", "", offered=Offered.HELD, in_replay=True),
    Verb(
        CommandKind.STOP, Takes.NOTHING, "stop", "", "cancels the current step; it is repeated on resume",
        moment=Moment.AT_ONCE, in_replay=True,
    ),
    Verb(
        CommandKind.COLLECT, Takes.SWITCH, "collect profiles", "auto|on|off", "collect profiles (for you)",
        ends_wait=False,
    ),
    Verb(
        CommandKind.EXPOSE, Takes.SWITCH, "show profiles to the model", "auto|on|off", "show profiles to the model",
        result=Result.PROFILE_IN_PROMPT,
    ),
    Verb(
        CommandKind.ROLL_BACK, Takes.KERNEL, "roll back", "KERNEL",
        "abandon the current search step; the next one starts from this kernel", result=Result.DEPTH, reopens=True,
    ),
    Verb(
        CommandKind.SET_BASE, Takes.KERNEL, "set base kernel", "KERNEL",
        "the next search step starts from this kernel; the current one continues", result=Result.DEPTH, ends_wait=False,
    ),
    Verb(
        CommandKind.PIN, Takes.KERNEL, "pin", "KERNEL",
        "every later search step starts from this kernel, until unpinned", result=Result.DEPTH, ends_wait=False,
    ),
    Verb(CommandKind.UNPIN, Takes.NOTHING, "unpin", "", "", ends_wait=False),
    Verb(
        CommandKind.HINT, Takes.TEXT, "hint", '"TEXT"', "added to the next prompt", moment=Moment.CARRIED,
        keeps_step=True,
    ),
    Verb(
        CommandKind.BAN, Takes.SENTENCE, "must not use", '"TEXT"',
        "an optimisation that kernels must not use, or must use, until lifted", result=Result.PROMPTS,
    ),
    Verb(CommandKind.REQUIRE, Takes.SENTENCE, "must use", '"TEXT"', "", result=Result.PROMPTS),
    Verb(
        CommandKind.LIFT, Takes.RULE, "lift rule", "RULE", "lift a rule, given by its text or by the id of its command",
    ),
    Verb(
        CommandKind.SUBMIT, Takes.SUBMISSION, "kernel by hand", "KERNEL HASH",
        "a kernel edited by hand (sent by `python -m engine submit`)", moment=Moment.CARRIED, offered=Offered.ALWAYS,
        result=Result.KERNEL, reopens=True,
    ),
    Verb(
        CommandKind.SET_MODEL, Takes.MODEL, "model", '"NAME [OPTIONS]"',
        'another model for all further calls, as in "gpt-5 reasoning_effort=high"', result=Result.CALL,
    ),
    Verb(
        CommandKind.RETRY, Takes.MODEL_AND_STEP, "do a step again", '"NAME [OPTIONS] [step=N]"',
        "redo the last model step (or step N) with this model", moment=Moment.BREAKS_REPLY, result=Result.CALL,
        reopens=True,
    ),
    Verb(
        CommandKind.SET_BUDGET, Takes.LIMITS, "limits", '"calls=80 cost=5"',
        "change limits; also tokens, minutes, depths (search steps), target,\nstagnation", offered=Offered.ALWAYS,
        reopens=True,
    ),
    Verb(
        CommandKind.ANSWER, Takes.ANSWER, "answer", "STEP.CALL HASH",
        "a person's reply (sent by `python -m engine answer`)", offered=Offered.ALWAYS,
    ),
    Verb(
        CommandKind.TAKE_OVER, Takes.CALLS, "answer calls by hand", "next|all|off",
        "write the next reply, or all replies, yourself",
    ),
    Verb(
        CommandKind.ASK_FIRST, Takes.APPROVAL_RULE, "ask before steps", "off|calls|all [yes|no SECONDS]",
        "wait for approval before each step; approve or reject if nobody\nresponds for SECONDS", ends_wait=False,
    ),
    Verb(
        CommandKind.APPROVE, Takes.WAITING_STEP, "approve step", "", "approve or reject the waiting step",
        offered=Offered.HELD, ends_wait=False, keeps_step=True,
    ),
    Verb(
        CommandKind.SKIP, Takes.WAITING_STEP, "skip step", "", "", offered=Offered.HELD, ends_wait=False,
        keeps_step=True,
    ),
    Verb(CommandKind.SET_CLASS, Takes.KERNEL_CLASS, "kernel class", "CLASS", "one of: {classes}"),
)  # fmt: skip
# In the order in which the command line tells them.
VERBS: Mapping[CommandKind, Verb] = {verb.kind: verb for verb in _TABLE}


def verbs_with(*results: Result) -> list[CommandKind]:
    """The verbs whose commands can be seen to have led to one of these."""
    return [kind for kind, verb in VERBS.items() if verb.result in results]


@dataclass(frozen=True, slots=True)
class Command:
    """One steering command as a person asked for it. `argument`: a switch, a candidate id, a hint, a class, limits."""

    command_id: str
    kind: CommandKind
    argument: str
    asked_by: str
    asked_at: EpochSeconds


@dataclass(frozen=True, slots=True)
class Rule:
    """What a person bans or requires until it is lifted; `command_id` names it."""

    command_id: str
    kind: CommandKind
    text: str

    def __str__(self) -> str:
        return f"{VERBS[self.kind].name}: {self.text}"
