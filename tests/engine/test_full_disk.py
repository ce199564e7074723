"""Commands on a disk that is full or may not be written: one sentence with the file and the remedy, an exit code."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from engine.cli.subcommands import MACHINE_LACKS
from storage.run.steering.commands import read_from
from tests import samples
from tests.engine.test_cli import SET, tilewright


def said(*words: str, takes_no_byte: bool = False) -> str:
    """The one sentence with which a command ends; where files take no byte, as on a full disk but without the disk."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard) if takes_no_byte else usual)
    try:
        done = tilewright(*words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    lines = done.stderr.splitlines()
    assert (done.returncode, len(lines)) == (MACHINE_LACKS, 1), done.stderr
    return lines[0].removeprefix("tilewright: ")


@pytest.fixture
def run(home: Path) -> Path:
    return samples.write_run(home / "runs", "past", seed=1, depths=2, ending="stopped").path


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("labels.jsonl", ("label", "past", "--name", "mine")),
        ("labels.jsonl", ("mark", "past", "1", "clean")),
        ("commands.jsonl", ("command", "past", "hint", "use vectors")),
    ],
)
def test_a_disk_that_takes_nothing_is_told_by_a_command_that_writes_into_a_run(
    run: Path, file: str, words: tuple[str, ...]
) -> None:
    before = (run / file).read_bytes() if (run / file).exists() else b""
    assert said(*words, takes_no_byte=True) == (
        f"{run / file}: File too large. The file is larger than files may be here: move it away, then try again."
    )
    assert (run / file).read_bytes() == before
    assert tilewright(*words).returncode == 0


@pytest.mark.parametrize("words", [("export", "past"), ("experience", "past"), ("record", "past")])
def test_a_full_disk_is_told_by_a_command_that_writes_a_file(run: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    full = "/dev/full: No space left on device. The disk is full: free some space, then try again."
    assert said(*words, "--output", "/dev/full") == full
    (tmp_path / "out").write_text("what was there")
    assert said(*words, "--output", str(tmp_path / "out"), takes_no_byte=True).startswith(f"{tmp_path / 'out'}: ")
    assert (tmp_path / "out").read_text() == "what was there"
    assert [path.name for path in tmp_path.glob(".out*")] == []


@pytest.mark.parametrize(
    "words",
    [
        ("run", "swish", "--depths", "0", *SET),
        ("run", "swish", "--background", *SET),
        ("suite", "run", "quick"),
        ("examples", "open"),
        ("knowledge", "disable", "memory_bound", "--why", "x"),
    ],
)
def test_a_home_that_cannot_be_made_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path / "file" / "home"))
    sentence = said(*words)
    assert sentence.startswith(f"{tmp_path / 'file'}")
    assert sentence.endswith("Not a directory. A file lies where a folder is needed: move it away, then try again.")


def test_a_command_that_was_refused_by_a_full_disk_can_be_sent_again(run: Path) -> None:
    file = run / "commands.jsonl"
    file.write_bytes(file.read_bytes() + b'{"command_id": "ab')
    before = len(read_from(file)[0])
    assert tilewright("command", "past", "hint", "use vectors").returncode == 0
    assert [one.argument for one in read_from(file)[0][before:]] == ["use vectors"]
