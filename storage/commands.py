"""Steering commands on their way to an engine: appended by dashboard and command line, read by the engine."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

from storage import budgets, codec, read_only
from storage.command_arguments import Answer, AskFirst, Hand, ModelChoice, Retry, Submission
from storage.records import Budget, Command, CommandKind, KernelClass, Switch
from storage.verbs import RULE_LENGTH, RULES

_PARSED: Mapping[CommandKind, Callable[[str], object]] = {
    CommandKind.ASK_FIRST: AskFirst.parse,
    CommandKind.ANSWER: Answer.parse,
    CommandKind.SUBMIT: Submission.parse,
    CommandKind.SET_MODEL: ModelChoice.parse,
    CommandKind.RETRY: Retry.parse,
}
_NEEDED = {
    CommandKind.ROLL_BACK: "a candidate id",
    CommandKind.SET_BASE: "a candidate id",
    CommandKind.PIN: "a candidate id",
    CommandKind.HINT: "a text",
    CommandKind.BAN: "a sentence",
    CommandKind.REQUIRE: "a sentence",
    CommandKind.LIFT: "a rule: its words, or the id of the command that set it",
}


class CommandError(ValueError):
    """A command that makes no sense; the message says what would."""


class ReadOnlyError(CommandError):
    """This server only shows runs (TILEWRIGHT_READ_ONLY is set)."""


def send(path: Path, kind: CommandKind, argument: str = "", asked_by: str = "") -> Command:
    """Append one command and return it.

    Raises:
        ReadOnlyError: steering is switched off here.
        CommandError: the argument does not fit the verb.
    """
    read_only.guard(ReadOnlyError, "steer runs")
    _check_argument(kind, argument)
    command = Command(uuid.uuid4().hex[:12], kind, argument, asked_by or _user(), time.time())
    line = (codec.dumps(command) + "\n").encode()
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        os.write(file, line)
        os.fsync(file)
    finally:
        os.close(file)
    return command


def read_from(path: Path, offset: int = 0) -> tuple[list[Command], int]:
    """Whole commands from a byte offset on, and the offset after them. A damaged line is skipped, not fatal."""
    if not path.exists():
        return [], offset
    with open(path, "rb") as file:
        file.seek(offset)
        data = file.read()
    whole = data[: data.rfind(b"\n") + 1]
    found = []
    for line in whole.splitlines():
        try:
            found.append(codec.from_plain(Command, json.loads(line)))
        except (ValueError, codec.DecodeError):
            continue
    return found, offset + len(whole)


def unreadable(path: Path) -> int:
    """How many whole lines are no commands."""
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except OSError:
        return 0
    return len([line for line in lines if line]) - len(read_from(path)[0])


def _check_argument(kind: CommandKind, argument: str) -> None:
    if kind in (CommandKind.COLLECT, CommandKind.EXPOSE) and argument not in set(Switch):
        raise CommandError(f"{kind} takes auto, on or off, not {argument!r}")
    if kind is CommandKind.SET_CLASS and argument not in set(KernelClass):
        raise CommandError(f"{kind} takes one of {', '.join(KernelClass)}, not {argument!r}")
    if kind is CommandKind.SET_BUDGET:
        try:
            budgets.changed(Budget(), argument)
        except ValueError as error:
            raise CommandError(str(error)) from error
    if kind is CommandKind.TAKE_OVER and argument not in set(Hand):
        raise CommandError(f"{kind} takes next, all or off, not {argument!r}")
    if kind in (CommandKind.APPROVE, CommandKind.SKIP) and argument and not argument.isdecimal():
        raise CommandError(f"{kind} takes the number of the step that waits, or nothing")
    if kind in _PARSED:
        try:
            _PARSED[kind](argument)
        except ValueError as error:
            raise CommandError(str(error)) from error
    if kind in _NEEDED and not argument.strip():
        raise CommandError(f"{kind} needs {_NEEDED[kind]}")
    if kind in RULES and len(" ".join(argument.split())) > RULE_LENGTH:
        raise CommandError(f"{kind} takes one sentence of at most {RULE_LENGTH} characters")


def _user() -> str:
    return os.environ.get("USER") or os.environ.get("LOGNAME") or "someone"
