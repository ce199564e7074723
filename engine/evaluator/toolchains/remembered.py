"""Records kept as files, for who would find them out once more. Knows no record."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from storage import codec, files

Record = TypeVar("Record")


def read(file: Path, kind: Callable[..., Record]) -> Record | None:
    """What is kept there; None where nothing is that can be read."""
    try:
        kept: Record = codec.from_plain(kind, json.loads(file.read_text()))
    except (OSError, ValueError):
        return None
    return kept


def keep(file: Path, record: Any) -> None:
    """Keep a record, where the disk lets it: a full one is told of by what must be kept."""
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        files.replace(file, codec.dumps(record))
