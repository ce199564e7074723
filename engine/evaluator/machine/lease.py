"""Exclusive use of something by lock files: a device of this host, a build folder. Knows no purpose, and no order among
those who wait (`turns`).

The locks of a device hold for every process of the host, whatever its TILEWRIGHT_HOME and its user. They lie in the
first of /run/lock, /tmp and /var/tmp that is sticky and that everybody may write to. The folder's mode decides, not the
rights of who asks, and no variable that differs from user to user does: so all choose the same one. Containers that
share a device and no folder mount one and name it in TILEWRIGHT_LEASES.

Strangers write to such a folder too. So a lock is never opened through a symbolic link, only a plain file is one, and
nothing is written to it. It is made under another name and linked to its own, with a mode that lets every user lock it
whatever the umask is; it is opened before it is made, because the kernel refuses O_CREAT on another user's file in a
sticky folder (fs.protected_regular). A lock that was removed or replaced meanwhile does not count and is taken again.
What stays open: any user can hold a lock for as long as they like. A lease orders those who keep to it, no others.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from engine.errors import ToolchainError

SHARED = (Path("/run/lock"), Path("/tmp"), Path("/var/tmp"))
FOLDER = "TILEWRIGHT_LEASES"
FOR_ALL = 0o644
Files = tuple[Path, ...]


def of_host(*devices: str) -> Files:
    """The lock files of some devices of this host, by names that every process gives them alike.

    Raises:
        ToolchainError: no folder is shared by all users.
    """
    return tuple(_folder() / f"tilewright.{device}.lock" for device in devices)


@contextmanager
def hold(*files: Path) -> Iterator[float]:
    """Wait for all locks and hold them; yields the seconds waited. They die with the process.

    Raises:
        ToolchainError: one of them is not a file that may be locked.
    """
    started = time.monotonic()
    with ExitStack() as held:
        for path in sorted(set(files)):  # always in one order, so that two who want several cannot block each other
            held.callback(os.close, _locked(path, fcntl.LOCK_EX))
        yield time.monotonic() - started


@contextmanager
def held_if_free(*files: Path) -> Iterator[bool]:
    """Hold all locks if they are free, without waiting; False where another process has one of them."""
    with ExitStack() as held:
        is_free = True
        try:
            for path in sorted(set(files)) if len(files) > 1 else files:
                held.callback(os.close, _locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError:
            is_free = False
        yield is_free


def _folder() -> Path:
    if named := os.environ.get(FOLDER):
        return Path(named)
    for path in SHARED:
        with suppress(OSError):
            mode = path.stat().st_mode
            if mode & stat.S_ISVTX and mode & stat.S_IWOTH and os.access(path, os.W_OK):  # the last: not read-only
                return path
    raise ToolchainError(
        f"no folder for the locks of devices: none of {', '.join(map(str, SHARED))} is writable by every user and "
        f"sticky. Set {FOLDER} to a folder that all who use the device can write to"
    )


def _locked(path: Path, how: int) -> int:
    while True:
        file = _opened(path)
        try:
            fcntl.flock(file, how)
        except OSError:
            os.close(file)
            raise
        if _is_still_at(file, path):
            return file
        os.close(file)


def _opened(path: Path) -> int:
    """A descriptor; the file is made where there is none.

    Raises:
        ToolchainError: what is there may not be opened, or is no plain file.
    """
    while True:
        try:
            file = _open(path)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            _make(path)
            continue
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.ELOOP, errno.EISDIR, errno.ENXIO):
                raise
            raise _unusable(path, str(error.strerror)) from error
        if stat.S_ISREG(os.fstat(file).st_mode):
            return file
        os.close(file)
        raise _unusable(path, "it is no plain file")


def _open(path: Path) -> int:
    """To write to where that is allowed, because a network file system locks no other; without waiting for a pipe."""
    flags = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        return os.open(path, os.O_RDWR | flags)
    except PermissionError:
        return os.open(path, os.O_RDONLY | flags)


def _make(path: Path) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.") as draft:
        os.fchmod(draft.fileno(), FOR_ALL)
        with suppress(FileExistsError):
            os.link(draft.name, path)


def _unusable(path: Path, why: str) -> ToolchainError:
    message = f"the lock {path} cannot be used: {why}. Remove it, or set {FOLDER} to a folder"
    return ToolchainError(f"{message} that all who use the device share")


def _is_still_at(file: int, path: Path) -> bool:
    opened = os.fstat(file)
    with suppress(FileNotFoundError):
        there = os.lstat(path)
        return (opened.st_dev, opened.st_ino) == (there.st_dev, there.st_ino)
    return False
