"""The DuckDB file of one dashboard server: opened or rebuilt, written by one thread, read by many. Knows no journal."""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType

import duckdb

from storage.index.memory import Memory
from storage.index.rows import Row, StateRow, TableRow

SCHEMA = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
SCHEMA_VERSION = hashlib.sha256(SCHEMA.encode()).hexdigest()[:8]

# What tells the rows of those tables apart in which a row takes the place of an older one.
KEYS: Mapping[str, tuple[str, ...]] = {
    "runs": ("run_id",), "progress": ("run_id",), "snapshots": ("run_id",), "kernels": ("run_id", "candidate_id"),
    "steps": ("run_id", "step"),
}  # fmt: skip

# Of all queries together, and of what they put on disk meanwhile. The page of a run of 20,000 iterations takes 90 MB.
MEMORY_LIMIT, SPILL_LIMIT = "256MB", "1GB"


class DatabaseError(RuntimeError):
    """The index cannot be used; the message says what to do."""


class QueryTooLargeError(DatabaseError):
    """A query would have taken more memory than the index may have."""

    def __init__(self) -> None:
        super().__init__(
            f"What was asked of the index takes more than the {MEMORY_LIMIT} of memory and {SPILL_LIMIT} of disk that "
            "it may have. Nothing is lost: ask for less, as a filter or a run with fewer kernels does."
        )


class DatabaseBusyError(DatabaseError):
    """Another process owns the file. `pid` is its process id when DuckDB names one."""

    def __init__(self, path: Path, pid: int | None) -> None:
        self.pid = pid
        owner = f"process {pid}" if pid else "another process"
        super().__init__(
            f"{path} belongs to {owner}: another dashboard already serves this folder. "
            f"Use that one, stop it, or start this one with another TILEWRIGHT_HOME."
        )


class Database:
    """One open index. `memory` keeps what was read; `set_aside` is where an unusable file was moved to make room."""

    def __init__(self, path: Path, set_aside: Path | None, connection: duckdb.DuckDBPyConnection) -> None:
        self.path = path
        self.set_aside = set_aside
        self._connection = connection
        self._cursors = threading.Lock()
        self._writer = connection.cursor()
        self._columns = _columns(self._writer)
        self._versions: dict[str, int] = {}
        self._version = 0
        self._changed = threading.Condition()
        self.memory = Memory(SCHEMA)

    def __enter__(self) -> Database:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Write the log into the file and let go of it."""
        self._writer.close()
        self._connection.close()

    @contextlib.contextmanager
    def reader(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor of the calling thread's own; it sees what is committed.

        Raises:
            QueryTooLargeError: what is asked with it takes more memory than the index may have.
        """
        cursor = self.open_cursor()
        try:
            yield cursor
        except duckdb.OutOfMemoryException as error:
            raise QueryTooLargeError from error
        finally:
            cursor.close()

    def open_cursor(self) -> duckdb.DuckDBPyConnection:
        """A cursor for the caller to close."""
        with self._cursors:
            return self._connection.cursor()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Writer]:
        """All that is written inside is committed together, or not at all. For the one writing thread."""
        self._writer.execute("BEGIN")
        with contextlib.ExitStack() as undo:
            undo.callback(self._roll_back)
            writer = Writer(self._writer, self._columns)
            yield writer
            self._writer.execute("COMMIT")
            self.memory.wrote(writer.tables)
            undo.pop_all()

    def _roll_back(self) -> None:
        with contextlib.suppress(duckdb.Error):
            self._writer.execute("ROLLBACK")

    def positions(self) -> list[tuple[str, str, int, int, int, int]]:
        """How far each run's files are read: run, file, inode, bytes, lines, last event."""
        with self.reader() as cursor:
            return cursor.execute(
                "SELECT run_id, file, arg_max(inode, position), max(position), max(lines), max(seq) "
                "FROM offsets GROUP BY ALL"
            ).fetchall()

    @property
    def version(self) -> int:
        """A number that rises with every change to anything shown, kept in memory."""
        return self._version

    def run_version(self, run_id: str) -> int:
        """A number that rises with every change to a run; 0 while nothing has changed since the index was opened."""
        return self._versions.get(run_id, 0)

    @property
    def versions(self) -> Mapping[str, int]:
        """The versions of all runs that have changed since the index was opened."""
        return self._versions

    def mark_changed(self, run_ids: Iterable[str]) -> None:
        """Tell readers that these runs have new rows."""
        with self._changed:
            self._version += 1
            self._versions.update(dict.fromkeys(run_ids, self._version))
            self._changed.notify_all()

    def wait_until(self, is_so: Callable[[], bool], timeout_s: float) -> bool:
        """Wait for a condition that only a change of the index can bring about; False when time is up."""
        with self._changed:
            return self._changed.wait_for(is_so, timeout_s)

    def snapshot_of(self, run_id: str) -> tuple[int, int, bytes] | None:
        """The fold of a long run as it stood (position, seq, fold); None where none is kept."""
        with self.reader() as cursor:
            snapshot: tuple[int, int, bytes] | None = cursor.execute(
                "SELECT position, seq, fold FROM snapshots WHERE run_id = ?", [run_id]
            ).fetchone()
        return snapshot


class Writer:
    """Adds rows to tables inside one transaction. `tables` are those that it has written to."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, columns: Mapping[str, tuple[str, ...]]) -> None:
        self._connection = connection
        self._columns = columns
        self.tables: set[str] = set()

    def add(self, rows: Iterable[TableRow]) -> None:
        """Append rows; a column that a row leaves out is NULL."""
        batches: dict[str, list[tuple[object, ...]]] = {}
        for table, row in rows:
            batches.setdefault(table, []).append(tuple(map(row.get, self._columns[table])))
        self.tables |= batches.keys()
        for table, batch in batches.items():
            appender = self._connection.appender(table)
            try:
                appender.append_rows(batch)
                appender.flush()
            finally:
                appender.clear()  # after an error it would hold on to its rows

    def put(self, states: Iterable[StateRow]) -> None:
        """Write rows in the place of those of the same keys; of several with one key the last."""
        latest: dict[tuple[object, ...], Row] = {}
        old: dict[tuple[str, object], list[object]] = {}
        for table, row, is_new in states:
            key = (table, *(row[name] for name in KEYS[table]))
            if key not in latest and not is_new:
                old.setdefault((table, key[1]), []).extend(key[2:])
            latest[key] = row
        for (table, run_id), keys in old.items():
            which = f" AND {KEYS[table][1]} IN (SELECT unnest(?))" if keys else ""
            self._connection.execute(
                f"DELETE FROM {table} WHERE run_id = ?{which}", [run_id, *([keys] if keys else [])]
            )
        self.add((str(key[0]), row) for key, row in latest.items())

    def remove_run(self, run_id: str) -> None:
        """Delete every row of a run."""
        self.tables |= self._columns.keys()
        for table in self._columns:
            self._connection.execute(f"DELETE FROM {table} WHERE run_id = ?", [run_id])


def index_file(home: Path) -> Path:
    """Where the index of this schema version is kept."""
    return home / f"index-{SCHEMA_VERSION}.duckdb"


def open_database(path: Path) -> Database:
    """Open the index, or make an empty one. A file that will not open is kept under another name, never deleted.

    Raises:
        DatabaseBusyError: another process has it open.
        DatabaseError: not even a new file can be made here.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _open_or_rebuild(path)
    except (OSError, duckdb.Error) as error:
        raise DatabaseError(f"cannot write the index {path}: {error}") from error


def in_memory() -> Database:
    """An empty index that no file keeps."""
    path = Path(":memory:")
    return Database(path, None, _connect(path))


def _open_or_rebuild(path: Path) -> Database:
    """Trap: a log left over without its file would be replayed into the new one, so it is moved away first."""
    moved = None if path.exists() else _set_aside(path)
    try:
        return Database(path, moved, _connect(path))
    except duckdb.Error as error:
        _raise_if_busy(path, error)
    return Database(path, _set_aside(path), _connect(path))


def _connect(path: Path) -> duckdb.DuckDBPyConnection:
    """One thread a query: drawing a page must not disturb kernels that are being timed on this machine, and the
    tables of 200 runs, one of 20,000 iterations, are drawn no faster by two."""
    has_file = path.name != ":memory:"
    spill = Path(f"{path}.tmp")
    connection = duckdb.connect(str(path), config={
        "threads": 1,
        "memory_limit": MEMORY_LIMIT,
        "temp_directory": str(spill) if has_file else "",
        "max_temp_directory_size": SPILL_LIMIT,
        # Else a few rows are compared with each of a large table, where it is guessed that they are few.
        "asof_loop_join_threshold": 0,
    })  # fmt: skip
    if has_file:
        shutil.rmtree(spill, ignore_errors=True)  # left by a server that was killed; the file is ours alone by now
    try:
        _create_schema(connection)
    except duckdb.Error:
        connection.close()
        raise
    return connection


def _create_schema(connection: duckdb.DuckDBPyConnection) -> None:
    if connection.execute("SELECT count(*) FROM duckdb_tables()").fetchall() == [(0,)]:
        connection.execute(f"BEGIN; {SCHEMA}; COMMIT;")
        connection.execute("CHECKPOINT")
        return
    for table in _columns(connection):
        connection.execute(f"SELECT count(*) FROM {table} WHERE run_id IS NULL").fetchall()


def _columns(connection: duckdb.DuckDBPyConnection) -> dict[str, tuple[str, ...]]:
    tables = connection.execute(
        "SELECT c.table_name, list(c.column_name ORDER BY c.column_index) FROM duckdb_columns() c "
        "JOIN duckdb_tables() t ON t.table_oid = c.table_oid GROUP BY c.table_name ORDER BY c.table_name"
    ).fetchall()
    return {table: tuple(columns) for table, columns in tables}


def _raise_if_busy(path: Path, error: duckdb.Error) -> None:
    if isinstance(error, duckdb.IOException) and "lock" in str(error):
        owner = re.search(r"PID (\d+)", str(error))
        raise DatabaseBusyError(path, int(owner[1]) if owner else None) from error


def _set_aside(path: Path) -> Path | None:
    """Move the file and its log away together; a log without its file could not be read again."""
    stamp = f"{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 10**9:09d}"
    moved = None
    for suffix in ("", ".wal"):
        old, new = Path(f"{path}{suffix}"), Path(f"{path}.set-aside-{stamp}{suffix}")
        if old.exists():
            old.replace(new)
            moved = moved or new
    return moved


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
            try:
                yield self._cursor
            except duckdb.OutOfMemoryException as error:
                raise QueryTooLargeError from error

    def close(self) -> None:
        """Let go of the moment."""
        with self._turn:
            self._cursor.close()
