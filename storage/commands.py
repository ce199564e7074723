"""Steering commands on their way to an engine: appended by dashboard and command line, read by the engine."""

from __future__ import annotations

import json
import os
import time
import uuid
from pathlib import Path

from storage import budgets, codec, read_only
from storage.attendance import Answer, AskFirst, Hand
from storage.records import Budget, Command, CommandKind, KernelClass, Switch


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
    if kind in (CommandKind.ASK_FIRST, CommandKind.ANSWER):
        try:
            (AskFirst if kind is CommandKind.ASK_FIRST else Answer).parse(argument)
        except ValueError as error:
            raise CommandError(str(error)) from error
    if kind in (CommandKind.ROLL_BACK, CommandKind.HINT) and not argument.strip():
        raise CommandError(f"{kind} needs {'a candidate id' if kind is CommandKind.ROLL_BACK else 'a text'}")


def _user() -> str:
    return os.environ.get("USER") or os.environ.get("LOGNAME") or "someone"
