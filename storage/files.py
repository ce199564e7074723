"""Files that lose nothing: lines are appended and files are replaced whole, and are on disk when a call returns. Knows
no record.

A killed process, a full disk or an interrupted call leaves whole lines and at most one written in part, which readers
leave alone. It was never acknowledged: it is cut off before anything else is appended, by whoever appends next. What is
replaced is written beside first and renamed, so that a reader has the former file or the new one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar

from storage import codec

P = ParamSpec("P")
T = TypeVar("T")
_BLOCK = 4096
_drafts = itertools.count()


class Lines:
    """A file of lines, open to be appended to; it is made where there is none.

    A shared file is for one writer at a time, in all processes, as long as it is open; a last line that only lacks its
    newline is completed there, since people write such files too.

    Raises:
        OSError: the file cannot be opened, or its last line not be mended.
    """

    def __init__(self, path: Path, *, is_shared: bool = True) -> None:
        self.path = path
        self._is_shared = is_shared
        with naming(path):
            is_new = not path.exists()
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            try:
                if is_shared:
                    fcntl.flock(self._file, fcntl.LOCK_EX)
                self._mend()
                if is_new:
                    sync(path.parent)
            except BaseException:
                os.close(self._file)
                raise
        self._is_torn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self) -> bytes:
        """The whole file."""
        with naming(self.path):
            return os.pread(self._file, os.fstat(self._file).st_size, 0)

    def append(self, lines: Iterable[str], *, is_durable: bool = True) -> None:
        """Write lines, each whole or not at all; they are on disk when this returns, or else after `sync`.

        Raises:
            OSError: the disk is full or fails; lines before the failing one are kept. Where only putting them on disk
                failed, all are: they can be read, and may be lost with the machine's power.
        """
        data = b"".join(line.encode("utf-8", "surrogatepass") + b"\n" for line in lines)
        with naming(self.path):
            if self._is_torn:
                self._mend()
            self._is_torn = True
            try:
                write(self._file, data)
            except OSError:
                with contextlib.suppress(OSError):  # else the next line does it
                    self._mend()
                raise
            self._is_torn = False
        if is_durable and data:
            self.sync()

    def sync(self) -> None:
        """See that what was written is on disk."""
        with naming(self.path):
            os.fsync(self._file)

    def close(self) -> None:
        """Close the file, and let others write."""
        os.close(self._file)

    def _mend(self) -> None:
        end = os.fstat(self._file).st_size
        torn = _tail(self._file, end)
        if torn and self._is_shared and _is_record(torn):
            write(self._file, b"\n")
        elif torn:
            os.ftruncate(self._file, end - len(torn))
        self._is_torn = False


def append(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a shared file, each whole or not at all; they are on disk when this returns.

    Raises:
        OSError: the disk is full or may not be written; lines before the failing one are kept.
    """
    if lines := list(lines):
        with Lines(path) as file:
            file.append(lines)


def mend_tail(path: Path) -> None:
    """End a last line that lacks its newline: one that can be read is completed, any other is cut off."""
    if path.exists():
        Lines(path).close()


def replace(path: Path, content: str | bytes) -> None:
    """Put a file in the place of what was there; it is on disk when this returns.

    Raises:
        OSError: the disk is full or may not be written; what was there stays.
    """
    with naming(path):
        _settle(os.replace, _draft(path, content), path)
        sync(path.parent)


def hand_over(path: Path, content: str | bytes) -> None:
    """Write a file for a person, whole or not at all; what is no plain file, such as a pipe, is written to.

    Raises:
        OSError: the disk is full or may not be written.
    """
    target = path.resolve()
    if not target.exists() or target.is_file():
        replace(target, content)
        return
    with naming(path), open(target, "wb", buffering=0) as file:
        write(file.fileno(), content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)


def create(path: Path, content: str | bytes) -> None:
    """Make a file that is not there yet, once for all processes; it is on disk when this returns.

    Raises:
        FileExistsError: it is there already.
        OSError: the disk is full or may not be written.
    """
    with naming(path):
        draft = _draft(path, content)
        _settle(os.link, draft, path)
        _discard(draft)
        sync(path.parent)


def make_folder(folder: Path) -> None:
    """Make a folder, and those that it lies in; its name is on disk when this returns."""
    if not folder.is_dir():
        make_folder(folder.parent)
        try:
            again(os.mkdir, folder)
        except FileExistsError:
            if not folder.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), f"{folder}") from None
        sync(folder.parent)


def move(path: Path, to: Path) -> None:
    """Give a file or folder another name, which is on disk when this returns."""
    again(os.rename, path, to)
    sync(to.parent)
    if to.parent != path.parent:
        sync(path.parent)


def sync(folder: Path) -> None:
    """See that the names in a folder are on disk."""
    with naming(folder):
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(file)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that has no such thing
                raise
        finally:
            os.close(file)


def sweep(folder: Path) -> None:
    """Remove what processes that are gone had begun to write here and did not finish."""
    for path in folder.glob(".*"):
        writer = path.suffix.removeprefix(".").partition("-")[0]
        if writer.isdecimal() and not Path(f"/proc/{writer}").exists():
            with contextlib.suppress(OSError):
                path.unlink()


def again(act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What a call of the system returns; one that a signal interrupted is made again, as Python does with others."""
    while True:
        try:
            return act(*args, **kwargs)
        except InterruptedError:
            continue


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Inside, a failure of the system names this file, not its draft and not none."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            error.filename, error.filename2 = f"{path}", None
        raise


_OTHER_PLACE = "or choose another folder (TILEWRIGHT_HOME is that of all runs)"
_NO_RIGHT = f"You have no right to it: change its permissions, {_OTHER_PLACE}"
_REMEDIES: Mapping[int, str] = {
    errno.ENOSPC: "The disk is full: free some space",
    errno.EDQUOT: "The disk quota is used up: free some space",
    errno.EFBIG: "The file is larger than files may be here: move it away",
    errno.EROFS: f"The disk can only be read: make it writable, {_OTHER_PLACE}",
    errno.EACCES: _NO_RIGHT,
    errno.EPERM: _NO_RIGHT,
    errno.EIO: "The disk failed: look at its health and at the system's log",
    errno.ENOTDIR: "A file lies where a folder is needed: move it away",
    errno.EISDIR: "A folder lies where a file is needed: move it away",
    errno.EMFILE: "Too many files are open: raise the limit (`ulimit -n`)",
    errno.ENFILE: "Too many files are open on this machine: end other programs",
    errno.ENAMETOOLONG: "The name is too long: choose a shorter one",
    errno.ELOOP: "A link leads in a circle: remove it",
}


def explained(error: OSError) -> str:
    """Which file a failure of the system is about, what happened and what to do, in a line."""
    if error.errno is None:
        return f"{error}" or type(error).__name__
    what = error.strerror or type(error).__name__
    where = f"{error.filename}: " if error.filename else ""
    remedy = _REMEDIES.get(error.errno or 0, "")
    return f"{where}{what}. {remedy}, then try again." if remedy else f"{where}{what}"


def _draft(path: Path, content: str | bytes) -> Path:
    """The content as a file beside `path`, on disk."""
    draft = path.with_name(f".{path.name}.{os.getpid()}-{next(_drafts)}")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        write(file, content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
        os.fsync(file)
    except BaseException:
        _discard(draft)
        raise
    finally:
        os.close(file)
    return draft


def _settle(act: Callable[[Path, Path], None], draft: Path, path: Path) -> None:
    try:
        again(act, draft, path)
    except BaseException:
        _discard(draft)
        raise


def _discard(draft: Path) -> None:
    with contextlib.suppress(OSError):  # what stays is swept by the next engine
        again(os.unlink, draft)


def write(file: int, data: bytes) -> None:
    """Write all of it to an open file."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _tail(file: int, end: int) -> bytes:
    """What stands behind the last newline."""
    length, tail = _BLOCK, b""
    while len(tail) < end and b"\n" not in tail:
        tail = os.pread(file, length, max(0, end - length))
        length = min(2 * length, max(end, _BLOCK))
    return tail[tail.rfind(b"\n") + 1 :]


def _is_record(line: bytes) -> bool:
    try:
        codec.read_line(dict[str, Any], line)
    except codec.DecodeError:
        return False
    return True
