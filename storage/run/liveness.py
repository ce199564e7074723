"""Whether a run's engine is alive: a lock that the engine holds for life, asked about without being touched."""

from __future__ import annotations

from storage.locks import AlreadyRunningError, hold_file, is_file_held
from storage.run.folder import RunFolder


def hold(folder: RunFolder) -> int:
    """Take the run's lock and return the open file; it is released when the process ends, however it ends.

    Raises:
        AlreadyRunningError: another engine works on this run.
    """
    try:
        return hold_file(folder.lock_file)
    except AlreadyRunningError as error:
        raise AlreadyRunningError(
            f"run {folder.run_id} is already running: stop it first, or steer it while it runs"
        ) from error


def is_held(folder: RunFolder) -> bool:
    """True while an engine process lives on this run."""
    return is_file_held(folder.lock_file)
