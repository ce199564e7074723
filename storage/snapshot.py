"""The index as it stood at one moment: for a page that is held still while its run goes on."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import duckdb

from storage.database import SCHEMA, Database
from storage.memory import Memory


class Snapshot(Database):
    """Reads like the database it was taken of; what is written later is not in it.

    It is a transaction that stays open and keeps the database from tidying up, so close it, or let go of it.
    """

    def __init__(self, live: Database) -> None:
        self._cursor = live.open_cursor()
        self._turn = threading.RLock()
        self._cursor.execute("BEGIN")
        self._cursor.execute("SELECT count(*) FROM runs").fetchall()  # Trap: the moment is that of the first query
        self.path, self.set_aside = live.path, live.set_aside
        self._versions, self._version = dict(live.versions), live.version
        self.memory = Memory(SCHEMA)

    @contextlib.contextmanager
    def reader(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """The one cursor that sees that moment, for one thread at a time."""
        with self._turn:
            yield self._cursor

    def close(self) -> None:
        """Let go of the moment."""
        with self._turn:
            self._cursor.close()
