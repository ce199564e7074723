"""All kernels of a run, read once for everything on a page that asks for them."""

from __future__ import annotations

import functools

from pages.parts import index
from storage import queries
from storage.database import Database
from storage.queries import AttemptRow


def attempts(run_id: str) -> tuple[AttemptRow, ...]:
    """Every kernel of a run in the order they were made, read again only when something of the run has changed."""
    db = index.current()
    # The version is taken first: what is read may be newer than it, and is then read once more, but never older.
    return _read(db, run_id, queries.version(db, run_id))


@functools.lru_cache(maxsize=4)
def _read(db: Database, run_id: str, _version: int) -> tuple[AttemptRow, ...]:
    return tuple(queries.attempts(db, run_id))
