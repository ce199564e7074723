"""New whole lines of a run's files as rows for the index, piece by piece. Knows the files, not the database."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from storage import codec, untrusted
from storage.index import projection
from storage.index.projection import Rows
from storage.run import labels
from storage.run.folder import RunFolder
from storage.run.journal import Entry, Fault, FaultKind, Reader, encode
from storage.run.labels import Labels
from storage.run.steering.verbs import Command

_INODE_MASK = 2**63 - 1  # some file systems number files beyond what a signed column holds


@dataclass(frozen=True, slots=True)
class Position:
    """How far a file is read: bytes and lines, the last event's number in a journal, and which file it was."""

    inode: int
    offset: int = 0
    lines: int = 0
    seq: int = 0


def end_of(path: Path) -> Position | None:
    """Where the file ends now (line count unknown); None when there is no such file."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Position(found.st_ino & _INODE_MASK, found.st_size)


def read_whole_lines(path: Path, start: Position, limit_bytes: int) -> bytes:
    """Bytes from a position up to the last newline within about `limit_bytes`; a longer line is read whole, unless it
    is so long that it can only be damage: of that as much as a line may have.

    A torn last line is left for later, and so is a file that is no longer the one the position belongs to.

    Raises:
        UntrustedError: it is no regular file, or may not be read.
    """
    with untrusted.open_file(path) as file:
        if os.fstat(file.fileno()).st_ino & _INODE_MASK != start.inode:
            return b""
        file.seek(start.offset)
        data = file.read(limit_bytes)
        if b"\n" not in data:
            data += file.readline(untrusted.MOST_LINE_BYTES - len(data))
    return data if len(data) == untrusted.MOST_LINE_BYTES else data[: data.rfind(b"\n") + 1]


def split(data: bytes, start: Position) -> Iterator[tuple[Position, bytes]]:
    """Lines without their newlines, each with its own position; a part of one that is too long counts as one."""
    offset, number = start.offset, start.lines
    for line in data.removesuffix(b"\n").split(b"\n"):
        number += 1
        yield Position(start.inode, offset, number), line
        offset += len(line) + 1


CHUNK_BYTES = 1 << 20

SETTINGS, JOURNAL, COMMANDS, LABELS = "run.json", "journal.jsonl", "commands.jsonl", labels.FILE
FILES = (SETTINGS, JOURNAL, COMMANDS, LABELS)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of a stretch of one file and the position after it: they are written together or not at all."""

    run_id: str
    file: str
    rows: list[tuple[str, dict[str, object]]]
    end: Position
    size: int

    @property
    def all_rows(self) -> list[tuple[str, dict[str, object]]]:
        """The rows and the new position as one more row."""
        end = {"inode": self.end.inode, "position": self.end.offset, "lines": self.end.lines, "seq": self.end.seq}
        return [*self.rows, ("offsets", {"run_id": self.run_id, "file": self.file, **end})]


def rows_until(run: RunFolder, entries: Iterable[Entry]) -> Iterator[tuple[str, dict[str, object]]]:
    """A run's settings, its labels and these of its events as rows: how the run stood when no more had happened."""
    if settings := end_of(run.path / SETTINGS):
        yield from read_settings(run, settings).rows
    if named := end_of(run.path / LABELS):
        yield from (row for chunk in read_labels(run, Position(named.inode)) for row in chunk.rows)
    for entry in entries:
        yield from projection.rows_of_entry(run.run_id, entry, encode(entry))


def read_settings(run: RunFolder, now: Position) -> Chunk:
    """The whole of run.json; one that cannot be read, or has the id of another run, is a problem shown to people."""
    try:
        settings = run.read_settings()
        if settings.run_id == run.run_id:
            rows = list(projection.rows_of_settings(settings))
        else:
            rows = [_problem(run.run_id, SETTINGS, 0, FaultKind.FOREIGN, settings.run_id)]
    except codec.DecodeError as error:
        rows = [_problem(run.run_id, SETTINGS, 0, FaultKind.UNREADABLE, f"{error}")]
    return Chunk(run.run_id, SETTINGS, rows, now, now.offset)


def read_journal(run: RunFolder, start: Position) -> Iterator[Chunk]:
    """New events."""
    reader = Reader(start.seq)

    def rows(at: Position, line: bytes) -> Rows:
        entry, faults = reader.take(line)
        yield from (_fault(run.run_id, at.offset, fault) for fault in faults)
        if entry:
            yield from projection.rows_of_entry(run.run_id, entry, line.decode("utf-8", "surrogatepass"))

    for chunk in read(run.run_id, run.path / JOURNAL, start, rows):
        yield replace(chunk, end=replace(chunk.end, seq=reader.seq))


def read_commands(run: RunFolder, start: Position) -> Iterator[Chunk]:
    """New commands, numbered by their lines."""

    def rows(at: Position, line: bytes) -> Rows:
        if line:
            yield from projection.rows_of_command(run.run_id, at.lines, codec.read_line(Command, line))

    return read(run.run_id, run.path / COMMANDS, start, rows)


def read_labels(run: RunFolder, start: Position) -> Iterator[Chunk]:
    """New changes of the run's labels, numbered by their lines."""

    def rows(at: Position, line: bytes) -> Rows:
        if line:
            yield from projection.rows_of_labels(run.run_id, at.lines, codec.read_line(Labels, line))

    return read(run.run_id, run.path / LABELS, start, rows)


def read(source: str, path: Path, start: Position, rows_of: Callable[[Position, bytes], Rows]) -> Iterator[Chunk]:
    """New lines of one file of a run, or of another source, as the rows that they stand for."""
    while data := read_whole_lines(path, start, CHUNK_BYTES):
        rows: list[tuple[str, dict[str, object]]] = []
        for at, line in split(data, start):
            try:
                rows += list(rows_of(at, line))
            except (ValueError, ArithmeticError, RecursionError) as error:
                rows.append(_problem(source, path.name, at.offset, FaultKind.UNREADABLE, f"{error}"))
        count = max(1, data.count(b"\n"))
        start = Position(start.inode, start.offset + len(data), start.lines + count)
        yield Chunk(source, path.name, rows, start, len(data))


def _fault(run_id: str, position: int, fault: Fault) -> tuple[str, dict[str, object]]:
    message = fault.message or f"events {fault.first} to {fault.last} are missing"
    return _problem(run_id, JOURNAL, position, fault.kind, message)


def _problem(run_id: str, file: str, position: int, kind: FaultKind, message: str) -> tuple[str, dict[str, object]]:
    row = {"run_id": run_id, "file": file, "position": position, "kind": kind, "message": message[:500]}
    return "problems", projection.storable(row)
