"""Whole lines of a growing file from a byte offset on. Knows no line's meaning."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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
    """Bytes from a position up to the last newline within about `limit_bytes`; a longer line is read whole.

    A torn last line is left for later, and so is a file that is no longer the one the position belongs to.
    """
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_ino & _INODE_MASK != start.inode:
            return b""
        file.seek(start.offset)
        data = file.read(limit_bytes)
        while data and b"\n" not in data and (more := file.read(limit_bytes)):
            data += more
    return data[: data.rfind(b"\n") + 1]


def split(data: bytes, start: Position) -> Iterator[tuple[Position, bytes]]:
    """Lines without their newlines, each with its own position."""
    offset, number = start.offset, start.lines
    for line in data.split(b"\n")[:-1]:
        number += 1
        yield Position(start.inode, offset, number), line
        offset += len(line) + 1
