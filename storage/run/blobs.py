"""Texts kept once under the hash of their bytes. Knows nothing of what they mean."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from storage import files, untrusted
from storage.untrusted import Limits, UntrustedError

LARGEST = Limits(most_bytes=1 << 28)  # the largest are a profiler's own files
HASH = re.compile(r"[0-9a-f]{64}")


def text_hash(text: str) -> str:
    """SHA-256 of the UTF-8 bytes, in hex; lone surrogates are kept as they are."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes; empty when it cannot be read."""
    try:
        with untrusted.open_file(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, UntrustedError):
        return ""


class BlobError(FileNotFoundError):
    """A text that cannot be read: its file is missing."""


class DamagedBlobError(BlobError):
    """The file is there and holds something else."""


class Blobs:
    """A folder of blobs. Writing the same text twice costs nothing; a half-written blob is never visible."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, text: str) -> str:
        """Store a text, return its hash; the text is on disk by then.

        Raises:
            OSError: the disk is full or may not be written.
        """
        name = text_hash(text)
        target = self.folder / name
        if not target.exists():
            files.make_folder(self.folder)
            files.replace(target, text)
        return name

    def get(self, name: str) -> str:
        """Read a text.

        Raises:
            BlobError: no such blob, or the name is no hash.
            DamagedBlobError: the content does not fit the name.
        """
        if not HASH.fullmatch(name):
            raise BlobError(f"{name[:80]!r} is not a valid blob name")
        short = f"blobs/{name[:12]}… in run folder {self.folder.parent.name}"
        try:
            content = untrusted.read_bytes(self.folder / name, LARGEST)
        except UntrustedError as error:
            raise DamagedBlobError(f"{short} cannot be read: {error}") from error
        except OSError as error:
            raise BlobError(f"{short} is missing: restore it from a backup") from error
        if hashlib.sha256(content).hexdigest() != name:
            raise DamagedBlobError(f"{short} is damaged: restore it from a backup")
        return content.decode("utf-8", "surrogatepass")
