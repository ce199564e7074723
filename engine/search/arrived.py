"""The reply to a paid call, kept beside the journal the moment it is whole. Knows a file, not what comes of the reply.

A reply counts as arrived once the journal has its event, and that names a text which is stored before. What kills an
engine in between must not make the next one buy the reply again: one write into room that was taken before the call was
sent keeps it, also on a disk that has filled up meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.search.llm import Completion
from storage import codec, files
from storage.run.blobs import text_hash

NAME = "arrived"
ROOM = 1 << 18


@dataclass(frozen=True, slots=True)
class Arrived:
    """A whole reply to the call that `step`, `call` and `attempt` name, and what its event says beside it."""

    step: int
    call: int
    attempt: int
    is_profile_exposed: bool
    prompt_characters: int
    completion: Completion


def make_room(path: Path) -> None:
    """Take room on the disk for a reply, before it is paid for.

    Raises:
        OSError: there is none, or the file may not be written.
    """
    with files.naming(path):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.posix_fallocate(file, 0, ROOM)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):  # a file system that has no such thing
                raise
        finally:
            os.close(file)


def keep(path: Path, arrived: Arrived) -> None:
    """Keep a reply. A disk that fails is no reason to drop it: the journal may still take it."""
    text = codec.dumps(arrived)
    with contextlib.suppress(OSError):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            # With a hash, since what an earlier reply has left stands behind one that is written in part.
            files.write(file, f"{text_hash(text)} {text}\n".encode("utf-8", "surrogatepass"))
            os.fsync(file)
        finally:
            os.close(file)


def kept(folder: Path) -> Iterator[Arrived]:
    """Every whole reply that is kept in a run's folder, those too that the journal has."""
    for path in sorted(folder.glob(f"{NAME}*")):
        with contextlib.suppress(OSError, ValueError):
            line = path.read_bytes().partition(b"\n")[0].decode("utf-8", "surrogatepass")
            digest, _, text = line.partition(" ")
            if digest == text_hash(text):
                yield codec.read_line(Arrived, text.encode("utf-8", "surrogatepass"))


def forget(folder: Path) -> None:
    """Remove what is kept in a run's folder, and the room for more."""
    for path in folder.glob(f"{NAME}*"):
        with contextlib.suppress(OSError):
            path.unlink()
