"""New whole lines of a run's files as rows for the index, piece by piece. Knows the files, not the database."""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from storage import codec, untrusted
from storage.index.fold import RunFold
from storage.index.rows import StateRow, TableRow, check_numbers, fields_of, storable
from storage.run import labels
from storage.run.folder import RunFolder
from storage.run.journal import Entry, Fault, FaultKind, Reader, encode, kind_of
from storage.run.labels import Labels
from storage.run.settings import RunSettings
from storage.run.steering.verbs import Command

Rows = Iterator[TableRow]

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
        stat = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Position(stat.st_ino & _INODE_MASK, stat.st_size)


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
    """Rows of a stretch of one file and the position after it: they are written together or not at all. Each of
    `states` takes the place of the row of its key."""

    run_id: str
    file: str
    rows: list[TableRow]
    end: Position
    size: int
    states: Sequence[StateRow] = ()

    @property
    def all_rows(self) -> list[TableRow]:
        """The rows and the new position as one more row."""
        end = {"inode": self.end.inode, "position": self.end.offset, "lines": self.end.lines, "seq": self.end.seq}
        return [*self.rows, ("offsets", {"run_id": self.run_id, "file": self.file, **end})]


def whole_of(run: RunFolder, entries: Iterable[Entry]) -> Chunk:
    """A run's settings, its labels and these of its events as rows: how the run stood when no more had happened."""
    rows: list[TableRow] = []
    settings, states = settings_of(run), list[StateRow]()
    if named := end_of(run.path / LABELS):
        rows += (row for chunk in read_labels(run, Position(named.inode)) for row in chunk.rows)
    if isinstance(settings, RunSettings):
        fold = RunFold(settings)
        rows += (row for entry in entries for row in _rows_of_entry(run.run_id, fold, entry, 0, encode(entry)))
        states += fold.rows()
    return Chunk(run.run_id, JOURNAL, rows, Position(0), 0, states)


def settings_of(run: RunFolder) -> RunSettings | TableRow:
    """What is in run.json, or what is wrong with it."""
    try:
        settings = run.read_settings()
    except codec.DecodeError as error:
        return _problem(run.run_id, SETTINGS, 0, FaultKind.UNREADABLE, f"{error}")
    if settings.run_id != run.run_id:
        return _problem(run.run_id, SETTINGS, 0, FaultKind.FOREIGN, settings.run_id)
    return settings


def read_settings(run: RunFolder, now: Position) -> tuple[Chunk, RunFold | None]:
    """The whole of run.json, and the fold that begins with it; one that cannot be read, or has the id of another run,
    is a problem shown to people."""
    settings = settings_of(run)
    if not isinstance(settings, RunSettings):
        return Chunk(run.run_id, SETTINGS, [settings], now, now.offset), None
    fold = RunFold(settings)
    return Chunk(run.run_id, SETTINGS, [], now, now.offset, list(fold.rows())), fold


def read_journal(run: RunFolder, start: Position, fold: RunFold | None) -> Iterator[Chunk]:
    """New events. Without a fold, where run.json cannot be read, they are kept and come to nothing."""
    reader = Reader(start.seq)

    def rows(at: Position, line: bytes) -> Rows:
        entry, faults = reader.take(line)
        yield from (_fault(run.run_id, at.offset, fault) for fault in faults)
        if entry:
            yield from _rows_of_entry(run.run_id, fold, entry, at.offset, line.decode("utf-8", "surrogatepass"))

    for chunk in read(run.run_id, run.path / JOURNAL, start, rows):
        end = replace(chunk.end, seq=reader.seq)
        states = list(fold.rows()) if fold else []
        if fold and chunk.size < CHUNK_BYTES // 2 and fold.is_snapshot_due():  # not while much is still to be read
            snapshot = {"run_id": run.run_id, "position": end.offset, "seq": reader.seq, "fold": fold.snapshot()}
            states.append(("snapshots", snapshot, False))
        yield replace(chunk, end=end, states=states)


def fold_until(run: RunFolder, end: Position, snapshot: tuple[int, int, bytes] | None) -> RunFold | None:
    """The fold of a run whose journal is read that far; from a snapshot (position, seq, fold) on where there is one.
    None where run.json cannot be read.

    Raises:
        UntrustedError: the journal is no regular file, or may not be read.
    """
    fold, start = None, Position(end.inode)
    if snapshot is not None:
        with contextlib.suppress(pickle.UnpicklingError):
            fold, start = RunFold.restored(snapshot[2]), Position(end.inode, snapshot[0], 0, snapshot[1])
    if fold is None:
        settings = settings_of(run)
        if not isinstance(settings, RunSettings):
            return None
        fold = RunFold(settings)
    reader = Reader(start.seq)
    while start.offset < end.offset:
        data = read_whole_lines(run.path / JOURNAL, start, min(CHUNK_BYTES, end.offset - start.offset))
        if not data:
            break
        taken = (reader.take(line)[0] for _, line in split(data, start))
        fold.follow(entry for entry in taken if entry and _fits(entry))
        start = Position(start.inode, start.offset + len(data))
    fold.follow(())  # the rows of its beginning are in the index, also where nothing has happened yet
    return fold


def _fits(entry: Entry) -> bool:
    """Whether every number of an event fits into a column: one that has another is a problem, and comes to nothing."""
    try:
        check_numbers(entry.event)
    except codec.DecodeError:
        return False
    return True


def _rows_of_entry(run_id: str, fold: RunFold | None, entry: Entry, position: int, line: str) -> Rows:
    """A line of journal.jsonl.

    Raises:
        DecodeError: a number that no column can hold.
    """
    event = entry.event
    check_numbers(event)
    about = {"step": getattr(event, "step", None), "candidate_id": getattr(event, "candidate_id", None)}
    text = (
        encode(entry) if "\\ud" in line.lower() else line
    )  # half of a pair of surrogates is no text that pages can show
    yield storable_row(
        (
            "events",
            {"run_id": run_id, "seq": entry.seq, "time": entry.time, "kind": kind_of(event), "json": text} | about,
        )
    )
    if fold is None:
        return
    try:
        yield from (storable_row(row) for row in fold.apply(entry))
    except ValueError as error:
        yield _problem(run_id, JOURNAL, position, FaultKind.UNREADABLE, f"event {entry.seq}: {error}")


def storable_row(row: TableRow) -> TableRow:
    """A row as it is written."""
    return row[0], storable(row[1])


def read_commands(run: RunFolder, start: Position) -> Iterator[Chunk]:
    """New commands, numbered by their lines."""

    def rows(at: Position, line: bytes) -> Rows:
        if line:
            command = codec.read_line(Command, line)
            yield storable_row(("commands", fields_of(command) | {"run_id": run.run_id, "seq": at.lines}))

    return read(run.run_id, run.path / COMMANDS, start, rows)


def read_labels(run: RunFolder, start: Position) -> Iterator[Chunk]:
    """New changes of the run's labels, numbered by their lines."""

    def rows(at: Position, line: bytes) -> Rows:
        if line:
            named = codec.read_line(Labels, line)
            yield storable_row(("labels", fields_of(named) | {"run_id": run.run_id, "seq": at.lines}))

    return read(run.run_id, run.path / LABELS, start, rows)


def read(source: str, path: Path, start: Position, rows_of: Callable[[Position, bytes], Rows]) -> Iterator[Chunk]:
    """New lines of one file of a run, or of another source, as the rows that they stand for."""
    while data := read_whole_lines(path, start, CHUNK_BYTES):
        rows: list[TableRow] = []
        for at, line in split(data, start):
            try:
                rows += list(rows_of(at, line))
            except (ValueError, ArithmeticError, RecursionError) as error:
                rows.append(_problem(source, path.name, at.offset, FaultKind.UNREADABLE, f"{error}"))
        count = max(1, data.count(b"\n"))
        start = Position(start.inode, start.offset + len(data), start.lines + count)
        yield Chunk(source, path.name, rows, start, len(data))


def _fault(run_id: str, position: int, fault: Fault) -> TableRow:
    message = fault.message or f"events {fault.first} to {fault.last} are missing"
    return _problem(run_id, JOURNAL, position, fault.kind, message)


def _problem(run_id: str, file: str, position: int, kind: FaultKind, message: str) -> TableRow:
    row = {"run_id": run_id, "file": file, "position": position, "kind": kind, "message": message[:500]}
    return storable_row(("problems", row))
