"""What may lie where a file is expected: one list, for every command and page field that reads one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

Lay = Callable[[Path], object]


def _link(target: str) -> Lay:
    return lambda path: path.symlink_to(target)


def _bytes(content: bytes) -> Lay:
    return lambda path: path.write_bytes(content)


def _huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 20 << 30)  # bytes of a checkpoint, none of which is on the disk


NO_FILE: dict[str, Lay] = {
    "absent": lambda path: None,
    "huge": _huge,
    "endless": _link("/dev/zero"),
    "a device": _link("/dev/null"),
    "a terminal": _link("/dev/tty"),
    "a pipe that nobody writes to": lambda path: os.mkfifo(path),
    "a folder": lambda path: path.mkdir(),
    "a link to nothing": _link("nowhere"),
    "a link to itself": lambda path: path.symlink_to(path.name),
}
"""Nothing that is read at all, whatever is expected."""

NO_CONTENT: dict[str, Lay] = {
    "empty": _bytes(b""),
    "a file of the kernel that gives nothing now": _link("/proc/kmsg"),
    "another encoding": _bytes("größer".encode("utf-16")),
    "half a character": _bytes(b"x = '\xff\xfe"),
    "NULs": _bytes(bytes(4096)),
    "half written": _bytes(b'{"version": 1, "format": "tile'),
    "nested deeply": _bytes(b"[" * 100_000),
    "nested as an object": _bytes(b'{"a":' * 100_000),
    "a number of many digits": _bytes(b"N = " + b"9" * 5000 + b"\n"),
    "a number as JSON": _bytes(b"1" * 5000),
    "another type": _bytes(b'["a", 1, null]\n'),
    "of another version": _bytes(b'{"version": 99, "format": 99, "tilewright_knowledge": 99, "origin": "x"}\n'),
    "repeated": _bytes(b"name = 1\nname = 1\n" * 100),
    "a program": _bytes(b"\x7fELF\x02\x01\x01" + os.urandom(4096)),
    "an archive": _bytes(b"\xfd7zXZ\x00" + os.urandom(512)),
    "a long line": _bytes(b"x" * 900_000),
    "dots": _bytes(b"a." * 50_000 + b"a = 1\n"),
}
"""Files that say nothing of the kind that is expected."""

ALL = {**NO_FILE, **NO_CONTENT}
