"""Commands reach the file whole, or are refused with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.run.steering import commands
from storage.run.steering.commands import CommandError, ReadOnlyError
from storage.run.steering.verbs import CommandKind


@pytest.fixture
def path(home: Path) -> Path:
    return home / "commands.jsonl"


def test_a_command_sent_is_a_command_read(path: Path) -> None:
    sent = [
        commands.send(path, CommandKind.PAUSE),
        commands.send(path, CommandKind.HINT, "use 128-bit loads\nand ünroll", "ada"),
        commands.send(path, CommandKind.EXPOSE, "on"),
    ]
    assert commands.read_from(path) == (sent, path.stat().st_size)
    assert len({command.command_id for command in sent}) == 3


def test_reading_goes_on_where_it_stopped(path: Path) -> None:
    commands.send(path, CommandKind.PAUSE)
    _, offset = commands.read_from(path)
    later = commands.send(path, CommandKind.RESUME)
    assert commands.read_from(path, offset)[0] == [later]


def test_a_command_still_being_written_waits(path: Path) -> None:
    sent = commands.send(path, CommandKind.PAUSE)
    size = path.stat().st_size
    with open(path, "ab") as file:
        file.write(b'{"command_id":"half')
    assert commands.read_from(path) == ([sent], size)


def test_a_damaged_line_is_skipped(path: Path) -> None:
    path.write_text('nonsense\n{"command_id": 3}\n[]\n')
    sent = commands.send(path, CommandKind.STOP)
    assert commands.read_from(path)[0] == [sent]


def test_a_run_nobody_steered_has_no_commands(path: Path) -> None:
    assert commands.read_from(path) == ([], 0)


def test_a_read_only_server_sends_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_READ_ONLY", "1")
    with pytest.raises(ReadOnlyError, match="TILEWRIGHT_READ_ONLY"):
        commands.send(path, CommandKind.STOP)
    assert not path.exists()


@pytest.mark.parametrize(
    ("kind", "argument", "advice"),
    [
        (CommandKind.EXPOSE, "maybe", "auto, on or off"),
        (CommandKind.COLLECT, "", "auto, on or off"),
        (CommandKind.SET_CLASS, "sorting", "matmul"),
        (CommandKind.ROLL_BACK, " ", "candidate id"),
        (CommandKind.HINT, "\n", "a text"),
    ],
)
def test_a_command_that_makes_no_sense_is_refused_with_advice(
    path: Path, kind: CommandKind, argument: str, advice: str
) -> None:
    with pytest.raises(CommandError, match=advice):
        commands.send(path, kind, argument)
    assert not path.exists()


def test_who_asked_is_recorded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "grace")
    assert commands.send(path, CommandKind.STOP).asked_by == "grace"
    assert commands.send(path, CommandKind.STOP, asked_by="ada").asked_by == "ada"
