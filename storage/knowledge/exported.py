"""A knowledge base as one file, for another team or another machine: JSON Lines, a head and then one row a line."""

from __future__ import annotations

import hashlib
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from storage import codec, files, untrusted
from storage.knowledge import seed
from storage.knowledge.base import Base
from storage.knowledge.records import Evidence, FailureCase, Revision
from storage.untrusted import Limits, UntrustedError

VERSION = 1
LIMITS = Limits(most_bytes=512 << 20)


class KnowledgeError(ValueError):
    """What cannot be done with the knowledge base; the message says what can."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What such a file says. `origin` names where it is from, `seed` is what was shipped there, `digest` names the
    file's content."""

    origin: str
    seed: Revision | None
    revisions: Sequence[Revision]
    evidence: Sequence[Evidence]
    digest: str
    cases: Sequence[FailureCase] = ()


def write(path: Path, base: Base, origin: str = "") -> None:
    """Write everything that a base holds, the seed included. Readers see the whole file or none.

    Raises:
        KnowledgeError: the file cannot be written.
    """
    head = {"tilewright_knowledge": VERSION, "origin": origin or socket.gethostname(), "exported_at": time.time()}
    rows = [head, *({"revision": revision} for revision in base.revisions)]
    rows += [*({"evidence": row} for row in base.rows), *({"failure": case} for case in base.cases)]
    try:
        files.replace(path, "".join(f"{codec.dumps(row)}\n" for row in rows))
    except OSError as error:
        raise KnowledgeError(f"cannot write {files.explained(error)}") from error


def read(path: Path) -> Exported:
    """Read such a file. Unlike the files of a home it is whole or refused: it was written at once.

    Raises:
        KnowledgeError: the file cannot be read, is something else, or is damaged.
    """
    try:
        content = untrusted.read_bytes(path, LIMITS)
    except (FileNotFoundError, UntrustedError) as error:
        raise KnowledgeError(f"cannot read {path}: {error}") from error
    head, *lines = content.split(b"\n")
    origin = _origin(path, head)
    if lines.pop(-1) if lines else head:
        raise KnowledgeError(f"{path} ends in the middle of a row: export it again")
    revisions: list[Revision] = []
    evidence: list[Evidence] = []
    cases: list[FailureCase] = []
    for number, line in enumerate(lines, 2):
        try:
            row = codec.read_line(_Row, line)
        except codec.DecodeError as error:
            raise KnowledgeError(f"line {number} of {path} cannot be read: {error}. Export it again") from error
        revisions += [row.revision] if row.revision else []
        evidence += [row.evidence] if row.evidence else []
        cases += [row.failure] if row.failure else []
    shipped = next((revision for revision in revisions if revision.revision_id == seed.SEED), None)
    changes = [revision for revision in revisions if revision.revision_id != seed.SEED]
    return Exported(origin, shipped, changes, evidence, hashlib.sha256(content).hexdigest()[:12], cases)


@dataclass(frozen=True, slots=True)
class _Row:
    revision: Revision | None = None
    evidence: Evidence | None = None
    failure: FailureCase | None = None


def _origin(path: Path, head: bytes) -> str:
    try:
        plain = untrusted.json_value(head, f"the first line of {path}")
        version, origin = plain["tilewright_knowledge"], plain["origin"]
    except (ValueError, KeyError, TypeError) as error:
        raise KnowledgeError(f"{path} is no exported knowledge base: `knowledge export FILE` writes one") from error
    if version != VERSION:
        raise KnowledgeError(f"{path} was written by a newer version of Tilewright: update to import it")
    return str(origin)


T = TypeVar("T", Evidence, Revision, FailureCase)


def marked(row: T, origin: str) -> T:
    """The row as it is kept elsewhere: with where it came from first."""
    return row if row.origin else replace(row, origin=origin)
