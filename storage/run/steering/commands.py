"""Steering commands on their way to an engine: appended by dashboard and command line, read by the engine."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from storage import codec, files, read_only, untrusted
from storage.results.vocabulary import KernelClass
from storage.run import budgets
from storage.run.settings import Budget, RunState, Switch
from storage.run.steering.command_arguments import Answer, AskFirst, Hand, ModelChoice, Retry, Submission
from storage.run.steering.verbs import RULE_LENGTH, VERBS, Command, CommandKind, Offered, Takes
from storage.untrusted import UntrustedError

NOBODY_KNOWN = "someone"
Check = Callable[[CommandKind, str], object]
HELD = (RunState.PAUSED, RunState.WAITING)


class CommandError(ValueError):
    """A command that makes no sense; the message says what would."""


class ReadOnlyError(CommandError):
    """This server only shows runs (TILEWRIGHT_READ_ONLY is set)."""


def send(path: Path, kind: CommandKind, argument: str = "", asked_by: str = "") -> Command:
    """Append one command and return it.

    Raises:
        ReadOnlyError: steering is switched off here.
        CommandError: the argument does not fit the verb.
        OSError: the disk is full or may not be written.
    """
    read_only.guard(ReadOnlyError, "steer runs")
    check(kind, argument)
    command = Command(uuid.uuid4().hex[:12], kind, argument, asked_by or _user(), time.time())
    files.append(path, [codec.dumps(command)])
    return command


def read_from(path: Path, offset: int = 0) -> tuple[list[Command], int]:
    """Whole commands from a byte offset on, and the offset after them. Damage is skipped, not fatal."""
    commands: list[Command] = []
    try:
        for line in untrusted.raw_lines(path, offset):
            offset += len(line)
            with contextlib.suppress(codec.DecodeError):
                commands.append(codec.read_line(Command, line.removesuffix(b"\n")))
    except UntrustedError:
        pass  # `damage` tells it
    return commands, offset


def unreadable(path: Path) -> int:
    """How many whole lines are no commands.

    Raises:
        UntrustedError: the whole file cannot be read.
    """
    count = sum(1 for line in untrusted.lines(path) if line)
    return count - len(read_from(path)[0])


def check(kind: CommandKind, argument: str) -> None:
    """See that an argument is one that the verb takes; whether it makes sense in a run is not known here.

    Raises:
        CommandError: it is not; the message says what would do.
    """
    try:
        _CHECKS[VERBS[kind].takes](kind, argument)
    except ValueError as error:
        raise CommandError(str(error)) from error


def is_offered(kind: CommandKind, state: RunState, *, is_replay: bool = False) -> bool:
    """Whether a verb is offered to people while a run is in this state."""
    verb = VERBS[kind]
    if is_replay and not verb.in_replay:
        return False
    match verb.offered:
        case Offered.AT_WORK:
            return not state.is_over and state not in HELD
        case Offered.HELD:
            return state in HELD
        case Offered.WITH_ENGINE:
            return not state.is_over
        case Offered.ALWAYS:
            return True


def _anything(kind: CommandKind, argument: str) -> None:
    pass


def _one_of(allowed: Iterable[str], words: str) -> Check:
    def look(kind: CommandKind, argument: str) -> None:
        if argument not in set(allowed):
            raise ValueError(f"{kind} takes {words}, not {argument!r}")

    return look


def _needed(what: str) -> Check:
    def look(kind: CommandKind, argument: str) -> None:
        if not argument.strip():
            raise ValueError(f"{kind} needs {what}")

    return look


def _read_by(parse: Callable[[str], object]) -> Check:
    return lambda kind, argument: parse(argument)


def _sentence(kind: CommandKind, argument: str) -> None:
    _needed("a sentence")(kind, argument)
    if len(" ".join(argument.split())) > RULE_LENGTH:
        raise ValueError(f"{kind} takes one sentence of at most {RULE_LENGTH} characters")


def _waiting_step(kind: CommandKind, argument: str) -> None:
    if argument and not argument.isdecimal():
        raise ValueError(f"{kind} takes the number of the step that waits, or nothing")


_CHECKS: Mapping[Takes, Check] = {
    Takes.NOTHING: _anything,
    Takes.KERNEL: _needed("a candidate id"),
    Takes.TEXT: _needed("a text"),
    Takes.SENTENCE: _sentence,
    Takes.RULE: _needed("a rule: its words, or the id of the command that set it"),
    Takes.SWITCH: _one_of(Switch, "auto, on or off"),
    Takes.KERNEL_CLASS: _one_of(KernelClass, f"one of {', '.join(KernelClass)}"),
    Takes.LIMITS: _read_by(lambda text: budgets.changed(Budget(), text)),
    Takes.MODEL: _read_by(ModelChoice.parse),
    Takes.MODEL_AND_STEP: _read_by(Retry.parse),
    Takes.CALLS: _one_of(Hand, "next, all or off"),
    Takes.APPROVAL_RULE: _read_by(AskFirst.parse),
    Takes.WAITING_STEP: _waiting_step,
    Takes.SUBMISSION: _read_by(Submission.parse),
    Takes.ANSWER: _read_by(Answer.parse),
}


def _user() -> str:
    return os.environ.get("USER") or os.environ.get("LOGNAME") or NOBODY_KNOWN
