"""Locks on files that a process holds until it ends, however it ends, asked about without being touched.

An open-file-description lock, not flock: F_OFD_GETLK answers "held?" without taking the lock for an instant, so whoever
looks can never keep a starting engine out. Linux 3.15 and later.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from pathlib import Path

_FLOCK = "hhqqi4x"  # struct flock on 64-bit Linux: type, whence, start, length, pid


class AlreadyRunningError(RuntimeError):
    """Another process holds the lock, such as the engine that works on a run."""


def hold_file(path: Path) -> int:
    """Take the lock of a file, which is made where there is none; the open file is returned, and closing it lets go.

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


def is_file_held(path: Path) -> bool:
    """True while a process holds it; False where there is no such file, or none that may be read."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        answer = fcntl.fcntl(file, fcntl.F_OFD_GETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    finally:
        os.close(file)
    return bool(struct.unpack(_FLOCK, answer)[0] != fcntl.F_UNLCK)
