"""What may have become of a run's files, one kind each: the run is damaged, and every other run is as it was."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from storage.run.folder import RunFolder

DEEP = b"[" * 100_000
FILES = ("run.json", "journal.jsonl", "commands.jsonl", "labels.jsonl")


def _folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def _loop(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(path.name)


def _device(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def _line(line: bytes) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        if path.name == "run.json":
            path.write_bytes(line)
        else:
            lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
            path.write_bytes(b"".join([*lines[:5], line + b"\n", *lines[5:]]))

    return spoil


_SPOIL: dict[str, Callable[[Path], None]] = {
    "is a folder": _folder,
    "is a pipe": _pipe,
    "is a device without end": _device,
    "links to itself": _loop,
    "is nested deeply": _line(DEEP),
    "is nested deeply in a field": _line(b'{"run_id": ' + DEEP),
    "has a number of 5,000 digits": _line(b'{"seq": ' + b"9" * 5000 + b"}"),
    "is no text": _line(b"\xff\xfe\0\0"),
}


def _changed(file: str, **fields: Any) -> Callable[[RunFolder], None]:
    def spoil(run: RunFolder) -> None:
        path = run.path / file
        if file == "run.json":
            path.write_text(json.dumps(json.loads(path.read_text()) | fields))
        else:
            lines = [json.loads(line) | fields for line in path.read_text().splitlines()]
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    return spoil


def _at(file: str, how: Callable[[Path], None]) -> Callable[[RunFolder], None]:
    return lambda run: how(run.path / file)


DAMAGE: dict[str, Callable[[RunFolder], None]] = {
    f"{file} {what}": _at(file, how) for file in FILES for what, how in _SPOIL.items()
} | {
    "created in the year 1e292": _changed("run.json", created_at=1e300),
    "created at NaN": _changed("run.json", created_at=float("nan")),
    "created before the epoch": _changed("run.json", created_at=-1e18),
    "events in the year 1e292": _changed("journal.jsonl", time=1e300),
    "events before the epoch": _changed("journal.jsonl", time=-1.0),
    "commands in the year 1e292": _changed("commands.jsonl", asked_at=1e300),
}
# The run is listed as ever: people's own words are not there, and nothing else was lost.
HARMLESS = {
    name for name in DAMAGE if name.startswith("labels.jsonl ") and "folder" not in name and "pipe" not in name
    and "device" not in name and "links" not in name
}  # fmt: skip
