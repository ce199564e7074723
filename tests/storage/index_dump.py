"""All rows of an index in a comparable form."""

from __future__ import annotations

from pathlib import Path

from storage.index.database import Database, index_file, open_database
from storage.index.ingest import Ingest

Dump = dict[str, list[str]]


def dump(db: Database) -> Dump:
    """Every table but `offsets` (one row per batch, so it depends on when was read), rows sorted; NaN equals NaN."""
    with db.reader() as cursor:
        names = cursor.execute("SELECT table_name FROM duckdb_tables() WHERE table_name <> 'offsets'").fetchall()
        return {name: sorted(map(repr, cursor.execute(f"SELECT * FROM {name}").fetchall())) for (name,) in names}


def rebuilt(folder: Path, root: Path) -> Dump:
    """The rows that an index made from nothing has."""
    with open_database(index_file(folder)) as db:
        Ingest(db, root).catch_up()
        return dump(db)
