"""A suite's folder under TILEWRIGHT_HOME/suites: a journal appended under a lock, and a lock that its runner holds for
life. Knows events, not what they mean."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from storage import codec, files
from storage.home import home
from storage.run import liveness
from storage.run.folder import RunFolder
from storage.suites.records import NAME, Event

JOURNAL, DEFINITION, LOCK = "journal.jsonl", "suite.toml", "lock"
_KINDS: dict[str, type] = {kind.__name__: kind for kind in typing.get_args(Event)}


class SuiteError(ValueError):
    """A suite that is not there or cannot be read; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Line:
    """One event with its time in seconds since the epoch."""

    time: float
    event: Event


@dataclass(frozen=True, slots=True)
class SuiteFolder:
    """Paths inside one suite's folder."""

    path: Path

    @property
    def name(self) -> str:
        """The folder's name is the suite's."""
        return self.path.name

    @property
    def journal_file(self) -> Path:
        """Events, appended by runners and by people."""
        return self.path / JOURNAL

    @property
    def definition_file(self) -> Path:
        """The TOML file it was made from, for people; the journal has it too."""
        return self.path / DEFINITION

    @property
    def runner(self) -> RunFolder:
        """Lock and log of the runner, which are named as those of an engine."""
        return RunFolder(self.path)

    @property
    def has_runner(self) -> bool:
        """Whether a runner lives."""
        return liveness.is_held(self.runner)


def suites_folder() -> Path:
    """The folder that holds one folder per suite."""
    return home() / "suites"


def folder_of(name: str) -> SuiteFolder:
    """Where a suite of this name is or would be.

    Raises:
        SuiteError: no suite can have this name.
    """
    if not NAME.fullmatch(name):
        raise SuiteError(f"{name!r} is no name of a suite: use letters, digits, '.', '_' and '-'")
    return SuiteFolder(suites_folder() / name)


def find(name: str) -> SuiteFolder:
    """A suite that was started under this home.

    Raises:
        SuiteError: there is none.
    """
    folder = folder_of(name)
    if not folder.journal_file.exists():
        names = ", ".join(suite.name for suite in all_suites()) or "none yet"
        raise SuiteError(
            f"no suite {name!r} was started here. Those that were: {names}. `python -m engine suite run` starts one"
        )
    return folder


def all_suites() -> list[SuiteFolder]:
    """Every suite that was started, by name."""
    root = suites_folder()
    if not root.is_dir():
        return []
    return [SuiteFolder(path) for path in sorted(root.iterdir()) if (path / JOURNAL).exists()]


@contextlib.contextmanager
def writing(folder: SuiteFolder) -> Iterator[None]:
    """The journal for one writer at a time, in all processes; what is read inside stays true until the end."""
    files.make_folder(folder.path)
    file = os.open(folder.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        files.mend_tail(folder.journal_file)
        yield
    finally:
        os.close(file)


def append(folder: SuiteFolder, *events: Event) -> None:
    """Write events; they are on disk when this returns.

    Raises:
        OSError: the disk is full or may not be written.
    """
    with writing(folder):
        files.append(folder.journal_file, map(encode, events))


def encode(event: Event, at: float | None = None) -> str:
    """An event as a line, without its newline."""
    plain = {"kind": type(event).__name__, "time": time.time() if at is None else at, "event": codec.to_plain(event)}
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def decode(line: bytes) -> Line:
    """An event from its line.

    Raises:
        codec.DecodeError: it is none, or of a kind that this version does not know.
    """
    plain = codec.read_line(dict[str, typing.Any], line)
    kind = _KINDS.get(plain.get("kind", ""))
    if kind is None:
        raise codec.DecodeError(f"an event of a kind that this version does not know: {plain.get('kind')!r}")
    return Line(float(plain.get("time", 0.0)), codec.from_plain(kind, plain.get("event")))


def read(folder: SuiteFolder) -> list[Line]:
    """Every event that can be read; a torn last line, and one that is damaged, is left out."""
    try:
        data = folder.journal_file.read_bytes()
    except FileNotFoundError:
        return []
    lines = []
    for line in data[: data.rfind(b"\n") + 1].split(b"\n"):
        with contextlib.suppress(codec.DecodeError):
            lines += [decode(line)] if line else []
    return lines
