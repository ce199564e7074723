"""Whether a run's engine is alive: a lock the engine holds for life, asked about without being touched.

An open-file-description lock, not flock: F_OFD_GETLK answers "held?" without taking the lock for an instant, so a
dashboard that looks can never keep a starting engine out. Linux 3.15 and later. Does not know what an engine does.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from pathlib import Path

from storage.folder import RunFolder

_FLOCK = "hhqqi4x"  # struct flock on 64-bit Linux: type, whence, start, length, pid


class AlreadyRunningError(RuntimeError):
    """Another engine holds this run's lock."""


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


def hold_file(path: Path) -> int:
    """The same of any file, which is made where there is none.

    Raises:
        AlreadyRunningError: another process, or another open file of this one, holds it.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    except OSError as error:
        os.close(file)
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        raise AlreadyRunningError(f"{path} is held by another process") from error
    return file


def is_held(folder: RunFolder) -> bool:
    """True while an engine process lives on this run."""
    return is_file_held(folder.lock_file)


def is_file_held(path: Path) -> bool:
    """The same of any file; False where there is none, or none that may be read."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        answer = fcntl.fcntl(file, fcntl.F_OFD_GETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    finally:
        os.close(file)
    return bool(struct.unpack(_FLOCK, answer)[0] != fcntl.F_UNLCK)
