"""Recorded replies on disk: JSON Lines, one header, then one reply a line. Knows the format, not who replays it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import ModelError
from storage.records import Role

FORMAT = 1
SHIPPED = Path(__file__).resolve().parent.parent.parent / "tasks" / "recordings"


@dataclass(frozen=True, slots=True)
class Recording:
    """Replies by (role, hash of the kernel the call was about), in the order in which they were given."""

    path: Path
    header: Mapping[str, Any]
    replies: Mapping[tuple[Role, str | None], tuple[str, ...]]


def shipped_recording(task_name: str) -> Path | None:
    """The recording that comes with Tilewright for a task, if there is one."""
    path = SHIPPED / f"{task_name}.jsonl"
    return path if path.exists() else None


def read_recording(path: Path) -> Recording:
    """Read a recording.

    Raises:
        ModelError: missing, of another format, or a damaged line (with its number).
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
        header = json.loads(lines[0])
    except (OSError, json.JSONDecodeError) as error:
        raise ModelError(f"cannot read recording {path}: {error}") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelError(f"{path} is no recording of format {FORMAT}; its first line must say so")
    replies: dict[tuple[Role, str | None], tuple[str, ...]] = {}
    for number, line in enumerate(lines[1:], 2):
        if line.strip():
            role, source, reply = _reply(path, number, line)
            replies[role, source] = (*replies.get((role, source), ()), reply)
    return Recording(path, header, replies)


def _reply(path: Path, number: int, line: str) -> tuple[Role, str | None, str]:
    try:
        fields = json.loads(line)
        return Role(fields["role"]), fields["source"], str(fields["reply"])
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path}, line {number}: not a recorded reply ({error!r})") from error
