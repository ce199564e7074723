"""The one open index of this server process, shared by every session. Opened by app.py, read by all pages."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from storage import home as storage_home
from storage.index import database, queries
from storage.index.database import Database
from storage.index.ingest import Ingest
from storage.index.queries import AttemptRow
from storage.knowledge import files, seed
from storage.knowledge.base import Base, EvidenceRows


@dataclass(slots=True)
class Index:
    """The database and the thread that fills it."""

    database: Database
    ingest: Ingest
    opened_at: float


_opened: list[Index] = []
_looked_at: ContextVar[Database | None] = ContextVar("looked_at", default=None)


def open_index(home: Path | None = None) -> Index:
    """Open the index of a home (TILEWRIGHT_HOME) and keep it filled from the journals.

    Raises:
        database.DatabaseBusyError: another dashboard serves this folder.
    """
    home = home or storage_home.home()
    opened = database.open_database(database.index_file(home))
    ingest = Ingest(opened, home / "runs")
    ingest.start()
    _opened.append(Index(opened, ingest, time.time()))
    return _opened[-1]


def close_index() -> None:
    """Stop filling and let go of the file."""
    closing = _opened.pop()
    closing.ingest.stop()
    closing.database.close()


def opened_at() -> float:
    """When the index was opened, in seconds since the epoch: by which a page tells one server from the next."""
    return _opened[-1].opened_at


def known() -> Base:
    """What this home's knowledge base says now; its files are read as far as they are new. Where its folder is none,
    what Tilewright is shipped with, and that something is damaged."""
    try:
        return files.load()
    except (OSError, files.KnowledgeError):
        return Base([seed.revision()], EvidenceRows(), "", damaged=1)


def current() -> Database:
    """The open database, or the one that `looking_at` has put in its place."""
    return _looked_at.get() or _opened[-1].database


@contextlib.contextmanager
def looking_at(db: Database | None) -> Iterator[None]:
    """Everything drawn inside is drawn from this database; None changes nothing."""
    token = _looked_at.set(db or _looked_at.get())
    try:
        yield
    finally:
        _looked_at.reset(token)


def ingest() -> Ingest:
    """What fills the open database."""
    return _opened[-1].ingest


def is_read(run_id: str) -> bool:
    """Whether the open index holds all that can be read of a run's journal; so it does where none is open, and another
    one was filled before."""
    return not _opened or _opened[-1].ingest.has_read(run_id)


def is_unfinished(run_id: str) -> bool:
    """Whether a run is not over by its whole journal, or, where no index is open, by what its caller has read of it."""
    return is_read(run_id) and (not _opened or run_id in queries.unfinished_runs(_opened[-1].database))


def attempts(run_id: str) -> tuple[AttemptRow, ...]:
    """Every kernel of a run in the order they were made, read again only when something of the run has changed."""
    db = current()
    # The version is taken first: what is read may be newer than it, and is then read once more, but never older.
    return _read(db, run_id, queries.version(db, run_id))


def same_source(run_id: str) -> dict[str, int]:
    """The number of the first kernel of a run that has the same source, for each kernel that another one came before
    with it."""
    first: dict[str, int] = {}
    same: dict[str, int] = {}
    for kernel in attempts(run_id):
        if (number := first.setdefault(kernel.source_blob, kernel.number)) != kernel.number:
            same[kernel.candidate_id] = number
    return same


@functools.lru_cache(maxsize=4)
def _read(db: Database, run_id: str, _version: int) -> tuple[AttemptRow, ...]:
    return tuple(queries.attempts(db, run_id))
