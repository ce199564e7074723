"""New lines of a run's files as rows for the index, piece by piece. Knows the files, not the database."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from storage import codec, journal, projection, tail
from storage.folder import RunFolder
from storage.projection import Rows
from storage.records import Command
from storage.tail import Position

CHUNK_BYTES = 1 << 20

SETTINGS, JOURNAL, COMMANDS = "run.json", "journal.jsonl", "commands.jsonl"
FILES = (SETTINGS, JOURNAL, COMMANDS)


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
        end = {"inode": self.end.inode, "position": self.end.offset, "lines": self.end.lines}
        return [*self.rows, ("offsets", {"run_id": self.run_id, "file": self.file, **end})]


def read_settings(run: RunFolder, now: Position) -> Chunk:
    """The whole of run.json; one that cannot be read is a problem of the run, shown to people."""
    try:
        rows = list(projection.rows_of_settings(run.read_settings()))
    except (codec.DecodeError, UnicodeDecodeError) as error:
        rows = [_problem(run.run_id, SETTINGS, 0, error)]
    return Chunk(run.run_id, SETTINGS, rows, now, now.offset)


def read_journal(run: RunFolder, start: Position) -> Iterator[Chunk]:
    """New events."""

    def rows(_: int, line: str) -> Rows:
        return projection.rows_of_entry(run.run_id, journal.decode(line), line)

    return _read(run, JOURNAL, start, rows)


def read_commands(run: RunFolder, start: Position) -> Iterator[Chunk]:
    """New commands, numbered by their lines."""

    def rows(number: int, line: str) -> Rows:
        return projection.rows_of_command(run.run_id, number, codec.from_plain(Command, json.loads(line)))

    return _read(run, COMMANDS, start, rows)


def _read(run: RunFolder, file: str, start: Position, rows_of: Callable[[int, str], Rows]) -> Iterator[Chunk]:
    while data := tail.read_whole_lines(run.path / file, start, CHUNK_BYTES):
        rows: list[tuple[str, dict[str, object]]] = []
        for at, line in tail.split(data, start):
            try:
                rows += list(rows_of(at.lines, line.decode("utf-8", "surrogatepass"))) if line else []
            except (ValueError, ArithmeticError, RecursionError) as error:
                rows.append(_problem(run.run_id, file, at.offset, error))
        start = Position(start.inode, start.offset + len(data), start.lines + data.count(b"\n"))
        yield Chunk(run.run_id, file, rows, start, len(data))


def _problem(run_id: str, file: str, position: int, error: Exception) -> tuple[str, dict[str, object]]:
    row = {"run_id": run_id, "file": file, "position": position, "message": f"{error}"[:500]}
    return "problems", projection.storable(row)
