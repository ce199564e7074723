"""The files of the knowledge base: appended under a lock, folded from where they were read to. Knows no database.

Each row is one line and one write. A process that dies leaves whole lines and at most one torn one, which readers leave
alone and the next writer completes or cuts off: it was never acknowledged.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from storage import codec, read_only
from storage.folder import home
from storage.knowledge import seed
from storage.knowledge.base import Attempts, Base
from storage.knowledge.records import Evidence, Revision

EVIDENCE, REVISIONS, LOCK = "evidence.jsonl", "revisions.jsonl", "lock"
_TAIL = 4096  # bytes before the end of what was read: if they are others now, the file was replaced
_BLOCK = 4096
_NO_METRICS: dict[str, float] = {}
_REPEATED_TEXTS = (
    "run_id", "technique", "state", "task", "kernel_class", "language", "toolchain", "device", "architecture",
    "precision", "strategy", "model", "origin",
)  # fmt: skip


class KnowledgeError(ValueError):
    """What cannot be done with the knowledge base; the message says what can."""


def folder() -> Path:
    """Where this home keeps what runs have learned."""
    return home() / "knowledge"


def append_evidence(rows: Iterable[Evidence], folder: Path | None = None) -> int:
    """Write attempts, those whose id is there already apart. Returns how many were new; they are on disk then.

    Raises:
        OSError: the disk is full or may not be written; rows before the failing one are kept.
    """
    place = _place(folder)
    with _locked(place):
        _mend_tail(place / EVIDENCE)
        fold = _fold_of(place)
        with fold.turn:
            fold.read()
            new: dict[tuple[str, str, str], str] = {}
            for row in rows:
                if not fold.has_evidence(row) and row.evidence_id not in new:
                    new[row.evidence_id] = codec.dumps(row)
            _append(place / EVIDENCE, list(new.values()))
    return len(new)


def append_revision(revision: Revision, folder: Path | None = None) -> bool:
    """Write a change. False when there is one with this id, which stays.

    Raises:
        KnowledgeError: the id is that of the shipped seed.
        OSError: the disk is full or may not be written.
    """
    read_only.guard(KnowledgeError, "change what is known")
    if revision.revision_id == seed.SEED:
        raise KnowledgeError(f"the id {seed.SEED!r} belongs to what Tilewright is shipped with: choose another one")
    place = _place(folder)
    with _locked(place):
        _mend_tail(place / REVISIONS)
        fold = _fold_of(place)
        with fold.turn:
            fold.read()
            is_new = not fold.has_revision(revision.revision_id)
            _append(place / REVISIONS, [codec.dumps(revision)] if is_new else [])
    return is_new


def load(folder: Path | None = None, *, seeded: bool = True) -> Base:
    """What is known now. A process reads each byte once; a file that was replaced or cut is read anew."""
    fold = _fold_of(_place(folder))
    with fold.turn:
        fold.read()
        return fold.base(seeded)


def _place(folder: Path | None) -> Path:
    return (folder or home() / "knowledge").absolute()


@contextlib.contextmanager
def _locked(place: Path) -> Iterator[None]:
    """One writer at a time, in all processes; the lock goes with the process that holds it."""
    place.mkdir(parents=True, exist_ok=True)
    file = os.open(place / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def _append(path: Path, lines: list[str]) -> None:
    if not lines:
        return
    is_new = not path.exists()
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        for line in lines:
            whole = (line + "\n").encode("utf-8", "surrogatepass")
            end = os.fstat(file).st_size
            if os.write(file, whole) != len(whole):
                os.ftruncate(file, end)
                raise OSError(f"{path}: only a part of a row could be written: is the disk full?")
        os.fsync(file)
    finally:
        os.close(file)
    if is_new:
        _sync(path.parent)


def _mend_tail(path: Path) -> None:
    """End a last line that lacks its newline: one that can be read is completed, any other is cut off."""
    if not path.exists():
        return
    with open(path, "r+b") as file:
        end = start = file.seek(0, os.SEEK_END)
        tail = b""
        while start and b"\n" not in tail:
            start = max(0, start - _BLOCK)
            file.seek(start)
            tail = file.read(end - start)
        torn = tail[tail.rfind(b"\n") + 1 :]
        if not torn:
            return
        try:
            codec.read_line(dict[str, Any], torn)
        except codec.DecodeError:
            file.truncate(end - len(torn))
        else:
            file.write(b"\n")


def _sync(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


class _ReplacedError(Exception):
    """The file is not the one that was read before, or shorter."""


@dataclass(slots=True)
class _Lines:
    """New whole lines of one growing file."""

    path: Path
    inode: int = 0
    offset: int = 0
    tail: bytes = b""

    def news(self) -> Iterator[bytes]:
        """Lines since the last time; a torn last one waits.

        Raises:
            _ReplacedError: before the first line.
        """
        try:
            file = open(self.path, "rb")  # noqa: SIM115  # closed below
        except FileNotFoundError:
            if self.offset:
                raise _ReplacedError from None
            return
        with file:
            self._see_same(file)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                if len(line) > 1:
                    yield line
                self.offset += len(line)
                self.tail = (self.tail + line)[-_TAIL:]

    def _see_same(self, file: BinaryIO) -> None:
        now = os.fstat(file.fileno())
        if self.offset and (now.st_ino != self.inode or now.st_size < self.offset):
            raise _ReplacedError
        self.inode = now.st_ino
        file.seek(self.offset - len(self.tail))
        if file.read(len(self.tail)) != self.tail:
            raise _ReplacedError


@dataclass(slots=True)
class _Fold:
    """What one folder's files say, as far as they are read."""

    place: Path
    turn: threading.RLock = field(default_factory=threading.RLock)
    evidence: _Lines = field(init=False)
    changes: _Lines = field(init=False)
    attempts: Attempts = field(init=False)
    revisions: dict[str, Revision] = field(init=False)
    damaged: int = 0
    repeated: int = 0

    def __post_init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.evidence, self.changes = _Lines(self.place / EVIDENCE), _Lines(self.place / REVISIONS)
        self.attempts, self.revisions, self.damaged, self.repeated = Attempts(), {}, 0, 0

    def has_evidence(self, row: Evidence) -> bool:
        return row.evidence_id in self.attempts.ids

    def has_revision(self, revision_id: str) -> bool:
        return revision_id in self.revisions

    def read(self) -> None:
        """Take what is new; bases that were handed out stay as they are."""
        try:
            self._read()
        except _ReplacedError:
            self._begin()
            self._read()

    def _read(self) -> None:
        for line in self.changes.news():
            if (revision := self._row(Revision, line)) and revision.revision_id != seed.SEED:
                self.repeated += revision.revision_id in self.revisions
                self.revisions.setdefault(revision.revision_id, revision)
        for line in self.evidence.news():
            if row := self._row(Evidence, line):
                self.repeated += not self.attempts.add(_lean(row))

    def _row(self, kind: Any, line: bytes) -> Any:
        try:
            return codec.read_line(kind, line)
        except codec.DecodeError:
            self.damaged += 1
            return None

    def base(self, seeded: bool) -> Base:
        """All of it, as of now."""
        first = [seed.revision()] if seeded else []
        mark = f"evidence:{self.evidence.offset} revisions:{self.changes.offset}"
        mark += f" seed:{seed.digest()}" if seeded else ""
        return Base([*first, *self.revisions.values()], self.attempts, mark, self.damaged, self.repeated)


def _lean(row: Evidence) -> Evidence:
    """The same row, its texts and empty mappings shared with other rows."""
    texts: dict[str, Any] = {name: sys.intern(getattr(row, name)) for name in _REPEATED_TEXTS}
    if not row.before:
        texts["before"] = _NO_METRICS
    if not row.after:
        texts["after"] = _NO_METRICS
    return replace(row, **texts)


_folds: dict[Path, _Fold] = {}
_folds_turn = threading.Lock()


def _fold_of(place: Path) -> _Fold:
    with _folds_turn:
        return _folds.setdefault(place, _Fold(place))
