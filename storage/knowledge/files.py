"""The files of the knowledge base: appended under a lock, folded from where they were read to. Knows no database.

Each row is one line and one write, as storage/files.py has it.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import sys
import threading
import time
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from storage import codec, files, read_only, untrusted
from storage.home import home
from storage.knowledge import exported, seed
from storage.knowledge.base import Base, EvidenceRows
from storage.knowledge.exported import KnowledgeError as KnowledgeError
from storage.knowledge.records import Evidence, FailureCase, Revision, ScoredKernel
from storage.untrusted import UntrustedError

EVIDENCE, REVISIONS, FAILURES, LOCK = "evidence.jsonl", "revisions.jsonl", "failures.jsonl", "lock"
SCORES = "scores.jsonl"  # what reward models learn from: not indexed, not exported, and only its end is read
SCORES_READ = 2 * 2**20
_TAIL = 4096  # bytes before the end of what was read: if they are others now, the file was replaced
_NO_METRICS: Mapping[str, float] = types.MappingProxyType({})
_REPEATED_TEXTS = (
    "run_id", "candidate_id", "technique", "state", "task", "kernel_class", "language", "toolchain", "device",
    "architecture", "precision", "strategy", "model", "origin", "task_hash",
)  # fmt: skip


def folder() -> Path:
    """Where this home keeps what runs have learned."""
    return home() / "knowledge"


def own_folder(name: str, place: Path | None = None) -> Path:
    """Where a base of its own lies, in this home's folder or another."""
    return (place or folder()) / "own" / name


def append_evidence(rows: Iterable[Evidence], folder: Path | None = None) -> int:
    """Write attempts, those whose id is there already apart. Returns how many were new; they are on disk then.

    Raises:
        OSError: the disk is full or may not be written; rows before the failing one are kept.
    """
    with writing(folder) as writer:
        return writer.add_evidence(rows)


def append_cases(cases: Iterable[FailureCase], folder: Path | None = None) -> int:
    """Write what kernels show of failures, those whose id is there already apart. Returns how many were new.

    Raises:
        OSError: the disk is full or may not be written; rows before the failing one are kept.
    """
    with writing(folder) as writer:
        return writer.add_cases(cases)


def append_scores(rows: Iterable[ScoredKernel], folder: Path | None = None) -> None:
    """Write what kernels were worth. An id may be written again; readers take the first.

    Raises:
        OSError: the disk is full or may not be written.
    """
    with writing(folder) as writer:
        files.append(writer.place / SCORES, map(codec.dumps, rows))


def read_scores(folder: Path | None = None) -> list[ScoredKernel]:
    """What kernels were worth, oldest first, of the last 2 MB; lines that cannot be read are left out."""
    try:
        with open(_place(folder) / SCORES, "rb") as file:
            start = max(0, file.seek(0, os.SEEK_END) - SCORES_READ)
            file.seek(start)
            rows = file.read().split(b"\n")
    except FileNotFoundError:
        return []
    scores: dict[tuple[str, str], ScoredKernel] = {}
    for line in rows[start > 0 : -1]:  # the first line may be cut, and the last may lack its end
        with contextlib.suppress(codec.DecodeError):
            row: ScoredKernel = codec.read_line(ScoredKernel, line)
            scores.setdefault(row.case_id, row)
    return list(scores.values())


def append_revision(revision: Revision, folder: Path | None = None) -> bool:
    """Write a change. False when there is one with this id, which stays.

    Raises:
        KnowledgeError: the id is that of the shipped seed, or this server is read-only.
        OSError: the disk is full or may not be written.
    """
    read_only.guard(KnowledgeError, "change what is known")
    if revision.revision_id == seed.SEED:
        raise KnowledgeError(f"the id {seed.SEED!r} belongs to what Tilewright is shipped with: choose another one")
    with writing(folder) as writer:
        return writer.add_revisions([revision]) == 1


def load(folder: Path | None = None, *, seeded: bool = True) -> Base:
    """What is known now. A process reads each byte once; a file that was replaced or cut is read anew.

    `folder` may also be an exported file, which brings the seed of its own.

    Raises:
        KnowledgeError: the file is no exported knowledge base.
    """
    path = _place(folder)
    if path.is_file():
        return _exported(path, path.stat().st_mtime_ns, path.stat().st_size, seeded)
    fold = _fold_of(path)
    with fold.turn:
        fold.read()
        return fold.base(seeded)


@contextlib.contextmanager
def writing(folder: Path | None = None) -> Iterator[Writer]:
    """The knowledge base for one writer at a time, in all processes; the lock goes with the process that holds it."""
    path = _place(folder)
    files.make_folder(path)
    file = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        for name in (EVIDENCE, REVISIONS, FAILURES, SCORES):
            files.mend_tail(path / name)
        fold = _fold_of(path)
        with fold.turn:
            fold.read()
            yield Writer(path, fold)
    finally:
        os.close(file)


@dataclass(frozen=True, slots=True)
class Writer:
    """Adds rows while nobody else does."""

    place: Path
    _fold: _Fold

    def base(self) -> Base:
        """Everything that is there, the seed included."""
        self._fold.read()
        return self._fold.base(seeded=True)

    def add_evidence(self, rows: Iterable[Evidence]) -> int:
        """Write attempts whose id is new; returns how many."""
        ids = self._fold.rows.ids
        new: dict[tuple[str, str, str], Evidence] = {}
        for row in rows:
            if row.evidence_id not in ids:
                new.setdefault(row.evidence_id, row)
        files.append(self.place / EVIDENCE, map(codec.dumps, new.values()))
        return len(new)

    def add_revisions(self, revisions: Iterable[Revision]) -> int:
        """Write changes whose id is new; returns how many."""
        new: dict[str, Revision] = {}
        for revision in revisions:
            if revision.revision_id not in self._fold.revisions:
                new.setdefault(revision.revision_id, revision)
        files.append(self.place / REVISIONS, map(codec.dumps, new.values()))
        return len(new)

    def add_cases(self, cases: Iterable[FailureCase]) -> int:
        """Write what kernels show of failures whose id is new; returns how many."""
        new: dict[tuple[str, str], FailureCase] = {}
        for case in cases:
            if case.case_id not in self._fold.cases:
                new.setdefault(case.case_id, case)
        files.append(self.place / FAILURES, map(codec.dumps, new.values()))
        return len(new)

    def replace(self, rows: Sequence[Evidence] | Sequence[Revision] | Sequence[FailureCase], file: str) -> None:
        """Put these rows in place of a whole file, which is kept beside it under another name."""
        path = self.place / file
        files.again(os.link, path, path.with_name(f"{file}.before-{time.time_ns()}"))
        files.replace(path, "".join(f"{codec.dumps(row)}\n" for row in rows))


def _place(folder: Path | None) -> Path:
    return (folder or home() / "knowledge").absolute()


class _ReplacedError(Exception):
    """The file is not the one that was read before, or shorter."""


@dataclass(slots=True)
class _Lines:
    """New whole lines of one growing file. `is_closed`: it is no file, or may not be read."""

    path: Path
    inode: int = 0
    offset: int = 0
    tail: bytes = b""
    is_closed: bool = False

    def news(self) -> Iterator[bytes]:
        """Lines since the last time; a torn last one waits.

        Raises:
            _ReplacedError: before the first line.
        """
        self.is_closed = False
        try:
            file = untrusted.open_file(self.path)
        except UntrustedError as error:
            if isinstance(error.__cause__, NotADirectoryError):  # the home itself is none
                raise error.__cause__ from None
            self.is_closed = True
            return
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
    failures: _Lines = field(init=False)
    cases: dict[tuple[str, str], FailureCase] = field(init=False)
    rows: EvidenceRows = field(init=False)
    revisions: dict[str, Revision] = field(init=False)
    damaged: int = 0
    repeated: int = 0
    last: Base | None = None

    def __post_init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.evidence, self.changes = _Lines(self.place / EVIDENCE), _Lines(self.place / REVISIONS)
        self.failures, self.cases = _Lines(self.place / FAILURES), {}
        self.rows, self.revisions, self.damaged, self.repeated, self.last = EvidenceRows(), {}, 0, 0, None

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
                self.repeated += not self.rows.add(_lean(row))
        for line in self.failures.news():
            if case := self._row(FailureCase, line):
                self.repeated += case.case_id in self.cases
                self.cases.setdefault(case.case_id, case)

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
        mark += f" failures:{self.failures.offset}" if self.failures.offset else ""
        mark += f" seed:{seed.digest()}" if seeded else ""
        damaged = self.damaged + sum(file.is_closed for file in (self.evidence, self.changes, self.failures))
        if self.last is None or (self.last.mark, self.last.damaged) != (mark, damaged):
            changes, cases = [*first, *self.revisions.values()], self.cases.values()
            self.last = Base(changes, self.rows, mark, damaged, self.repeated, tuple(cases))
        return self.last


@functools.lru_cache(maxsize=4)
def _exported(path: Path, _changed: int, _size: int, seeded: bool) -> Base:
    content = exported.read(path)
    rows, seen = EvidenceRows(), {revision.revision_id: revision for revision in reversed(content.revisions)}
    for row in content.evidence:
        rows.add(_lean(row))
    first = [content.seed] if seeded and content.seed else []
    cases = {case.case_id: case for case in reversed(content.cases)}
    mark = f"file:{content.digest}" + (" seed" if first else "")
    return Base([*first, *reversed(seen.values())], rows, mark, cases=tuple(reversed(cases.values())))


def _lean(row: Evidence) -> Evidence:
    """The row with texts and empty mappings that it shares with other rows."""
    put = object.__setattr__  # nobody else has this row yet, and a copy takes three times as long
    for name in _REPEATED_TEXTS:
        put(row, name, sys.intern(getattr(row, name)))
    if not row.before:
        put(row, "before", _NO_METRICS)
    if not row.after:
        put(row, "after", _NO_METRICS)
    return row


_folds: dict[Path, _Fold] = {}
_folds_turn = threading.Lock()


def _fold_of(path: Path) -> _Fold:
    with _folds_turn:
        return _folds.setdefault(path, _Fold(path))
