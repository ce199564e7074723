"""Deleted runs, kept as they were until it is too late to undo. Knows folders, not what a run holds.

Deleting moves a run's folder to `trash/`, whole; restoring moves it back. What has lain there for UNDO_S is removed
from the disk by the next `empty`.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from storage import files, read_only
from storage.home import home
from storage.run import liveness
from storage.run.folder import RunFolder, find_run, run_at, runs_folder

UNDO_S = 7 * 86_400.0
_STAMP, _GONE = "deleted.json", ".removing-"


class TrashError(ValueError):
    """A run that cannot be deleted or restored; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """A run in the trash; times in seconds since the epoch."""

    run_id: str
    deleted_at: float
    deleted_by: str

    @property
    def final_at(self) -> float:
        """From when on it may be removed from the disk."""
        return self.deleted_at + UNDO_S


def trash_folder() -> Path:
    """The folder of deleted runs."""
    return home() / "trash"


def delete(run_id: str, deleted_by: str = "") -> Deleted:
    """Move a run to the trash. Nothing of it changes on disk, and no engine can begin on it meanwhile.

    Raises:
        FileNotFoundError: no such run.
        TrashError: this server is read-only, or the run is there already.
        AlreadyRunningError: an engine works on it.
    """
    read_only.guard(TrashError, "delete runs")
    run, path = find_run(run_id), trash_folder() / run_id
    lock = liveness.hold(run)
    try:
        if path.exists():
            raise TrashError(f"a deleted run {run_id} lies in {path} already: move that folder away first")
        stamp = {"time": time.time(), "by": deleted_by or os.environ.get("USER", "")}
        files.make_folder(path.parent)
        files.replace(run.path / _STAMP, json.dumps(stamp))
        files.move(run.path, path)
    finally:
        os.close(lock)
    return _of(path)


def restore(run_id: str) -> RunFolder:
    """Move a deleted run back.

    Raises:
        FileNotFoundError: no such run in the trash.
        TrashError: this server is read-only, or a run of that id is there.
    """
    read_only.guard(TrashError, "restore runs")
    run = run_at(run_id)
    path = trash_folder() / run.run_id
    if not path.is_dir():
        raise FileNotFoundError(f"no deleted run {run_id!r} in {trash_folder()}")
    if run.path.exists():
        raise TrashError(f"there is a run {run_id} again in {runs_folder()}: move that folder away first")
    files.move(path, run.path)
    (run.path / _STAMP).unlink(missing_ok=True)
    return run


def deleted_runs() -> list[Deleted]:
    """Every run that can be restored, the one deleted last first."""
    return sorted((_of(path) for path in _places()), key=lambda deleted: (-deleted.deleted_at, deleted.run_id))


def empty(now: float | None = None) -> list[str]:
    """Remove from the disk what has lain in the trash for UNDO_S; returns the runs.

    Raises:
        TrashError: this server is read-only.
    """
    read_only.guard(TrashError, "empty the trash")
    now = time.time() if now is None else now
    over = [deleted for deleted in map(_of, _places()) if deleted.final_at <= now]
    for deleted in over:
        # Renamed first: what is half removed must not be offered to be restored.
        files.move(trash_folder() / deleted.run_id, trash_folder() / f"{_GONE}{deleted.run_id}")
    for path in trash_folder().glob(f"{_GONE}*"):
        shutil.rmtree(path, ignore_errors=True)
    return [deleted.run_id for deleted in over]


def _places() -> Iterator[Path]:
    if trash_folder().is_dir():
        yield from (path for path in trash_folder().iterdir() if (path / "run.json").exists() and path.name[0] != ".")


def _of(path: Path) -> Deleted:
    """A folder without its stamp was put there by hand; its undo time begins when it was changed last."""
    try:
        plain = json.loads((path / _STAMP).read_text())
        return Deleted(path.name, float(plain["time"]), str(plain.get("by", "")))
    except (OSError, ValueError, KeyError, TypeError):
        return Deleted(path.name, path.stat().st_mtime, "")
