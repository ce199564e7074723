"""Files of JSON Lines that many processes append to, a line and a write each. Knows no record.

A process that dies leaves whole lines and at most one torn one, which readers leave alone and the next writer completes
or cuts off: it was never acknowledged.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from storage import codec

_BLOCK = 4096


def append(path: Path, lines: Iterable[str]) -> None:
    """Write lines, each whole or not at all; they are on disk when this returns. For whoever holds the file's lock.

    Raises:
        OSError: the disk is full or may not be written; lines before the failing one are kept.
    """
    lines = list(lines)
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
        sync(path.parent)


def mend_tail(path: Path) -> None:
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


def sync(folder: Path) -> None:
    """See that the names in a folder are on disk."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
