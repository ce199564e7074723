"""Indexes in memory that are emptied instead of made anew: a new one costs a tenth of a second for its tables.

For tests of what is shown. How a file is made, opened, shared and repaired is for tests of storage.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from storage.index import database

_kept: list[duckdb.DuckDBPyConnection] = []


@contextmanager
def emptied_databases() -> Iterator[None]:
    """Until the end of this, every index that is opened is one of these: an empty one for each file, one for a file."""
    opened: dict[Path, duckdb.DuckDBPyConnection] = {}
    used = 0
    connect = database._connect

    def taken(path: Path) -> duckdb.DuckDBPyConnection:
        nonlocal used
        if path not in opened:
            if used == len(_kept):
                _kept.append(connect(Path(":memory:")))
            opened[path], used = _kept[used], used + 1
        found = opened[path].cursor()  # what opened it closes it, and the database stays
        if path.name == ":memory:":
            del opened[path]
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "_connect", taken)
        yield
    for one in _kept[:used]:
        one.execute(";".join(f"DELETE FROM {table}" for table in database._columns(one)))
        one.execute("CHECKPOINT")  # else the rows that are gone are walked over for ever
