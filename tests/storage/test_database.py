"""One process owns the index; a file that cannot be used is put aside and made again."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import duckdb
import pytest

from storage.index.database import (
    SCHEMA_VERSION,
    Database,
    DatabaseBusyError,
    DatabaseError,
    QueryTooLargeError,
    Snapshot,
    index_file,
    open_database,
)
from storage.index.ingest import Ingest
from storage.index.queries import fetch
from tests.samples import write_run
from tests.storage.children import child, line_from
from tests.storage.index_dump import dump

OWNER = """
import sys
from pathlib import Path
from storage.index.database import open_database
db = open_database(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
"""


def test_another_process_that_owns_the_file_is_named_and_left_alone(home: Path) -> None:
    path = index_file(home)
    with child(OWNER, path) as owner:
        assert line_from(owner) == "open"
        before = sorted(home.iterdir())
        with pytest.raises(DatabaseBusyError, match=f"process {owner.pid}.*another dashboard") as caught:
            open_database(path)
        assert caught.value.pid == owner.pid
        assert sorted(home.iterdir()) == before


def test_the_file_of_a_killed_owner_can_be_opened(home: Path) -> None:
    path = index_file(home)
    with child(OWNER, path) as owner:
        assert line_from(owner) == "open"
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait()
    with open_database(path) as db:
        assert db.set_aside is None


@pytest.mark.parametrize("content", [b"", b"this is no database", b"\0" * 16384])
def test_a_file_that_will_not_open_is_kept_under_another_name_and_rebuilt(
    home: Path, root: Path, content: bytes
) -> None:
    write_run(root, depths=2)
    path = index_file(home)
    path.write_bytes(content)
    Path(f"{path}.wal").write_bytes(b"old log")
    with open_database(path) as db:
        Ingest(db, root).catch_up()
        assert dump(db)["runs"]
        assert db.set_aside is not None
        assert ".set-aside-" in db.set_aside.name
        assert db.set_aside.read_bytes() == content
        assert Path(f"{db.set_aside}.wal").read_bytes() == b"old log"


def test_a_database_of_something_else_is_not_written_to(home: Path) -> None:
    path = index_file(home)
    with duckdb.connect(str(path)) as other:
        other.execute("CREATE TABLE recipes (name VARCHAR)")
    with open_database(path) as db:
        assert db.set_aside is not None
    with duckdb.connect(str(db.set_aside)) as other:
        assert other.execute("SELECT count(*) FROM recipes").fetchall() == [(0,)]


def test_a_log_left_without_its_file_is_not_replayed_into_a_new_one(home: Path, root: Path) -> None:
    path = index_file(home)
    Path(f"{path}.wal").write_bytes(b"left over")
    with open_database(path) as db:
        assert db.set_aside is not None
        assert db.set_aside.read_bytes() == b"left over"


def test_two_unusable_files_in_a_row_are_both_kept(home: Path) -> None:
    kept = set()
    for content in (b"first", b"second"):
        index_file(home).write_bytes(content)
        with open_database(index_file(home)) as db:
            assert db.set_aside
            kept.add(db.set_aside.read_bytes())
        index_file(home).unlink()
    assert kept == {b"first", b"second"}


def test_a_folder_that_cannot_be_made_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DatabaseError, match="cannot write the index"):
        open_database(tmp_path / "file" / "index.duckdb")


def test_the_schema_version_is_in_the_name(home: Path) -> None:
    assert index_file(home) == home / f"index-{SCHEMA_VERSION}.duckdb"


def test_nothing_has_a_key_or_an_index(db: Database) -> None:
    with db.reader() as cursor:
        assert cursor.execute("SELECT count(*) FROM duckdb_indexes()").fetchall() == [(0,)]
        assert cursor.execute("SELECT count(*) FROM duckdb_constraints()").fetchall() == [(0,)]


def test_the_schema_is_in_the_file_before_the_first_row(db: Database) -> None:
    log = Path(f"{db.path}.wal")
    assert not log.exists() or log.stat().st_size == 0


def test_what_is_written_before_an_error_is_not_there_after_it(db: Database) -> None:
    def fail() -> None:
        with db.transaction() as writer:
            writer.add([("patches", {"run_id": "a", "seq": 1}), ("patches", {"run_id": "a", "seq": 2**70})])

    with pytest.raises(duckdb.Error):
        fail()
    assert dump(db)["patches"] == []
    with db.transaction() as writer:
        writer.add([("patches", {"run_id": "a", "seq": 1})])
    assert len(dump(db)["patches"]) == 1


def test_readers_in_other_threads_see_only_whole_transactions(db: Database) -> None:
    seen: set[int] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            with db.reader() as cursor:
                seen.add(int(cursor.execute("SELECT count(*) FROM patches").fetchall()[0][0]))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for _ in range(20):
        with db.transaction() as writer:
            for seq in range(7):
                writer.add([("patches", {"run_id": "a", "seq": seq})])
    done.set()
    for reader in readers:
        reader.join()
    assert all(count % 7 == 0 for count in seen)


def test_versions_rise_with_changes_and_only_for_the_runs_that_changed(db: Database) -> None:
    assert (db.version, db.run_version("a")) == (0, 0)
    db.mark_changed(["a"])
    first = db.run_version("a")
    db.mark_changed(["b"])
    assert db.run_version("a") == first
    assert db.version == db.run_version("b") > first


TOO_LARGE = "SELECT count(DISTINCT a.range * 1000003 + b.range) FROM range(20000) a, range(20000) b"


def test_a_query_that_takes_too_much_memory_ends_with_a_sentence_and_others_go_on(db: Database) -> None:
    cursor = db.open_cursor()
    cursor.execute("SET memory_limit = '40MB'; SET max_temp_directory_size = '40MB'")
    with pytest.raises(QueryTooLargeError, match=r"takes more than the 256MB of memory .* ask for less"):
        fetch.tuples(db, TOO_LARGE)
    assert fetch.tuples(db, "SELECT count(*) FROM runs") == [(0,)]
    with Snapshot(db) as held, pytest.raises(QueryTooLargeError):
        fetch.tuples(held, TOO_LARGE)


def test_the_memory_of_all_queries_is_bounded(db: Database) -> None:
    sql = "SELECT value FROM duckdb_settings() WHERE name IN ('memory_limit', 'max_temp_directory_size') ORDER BY name"
    assert fetch.tuples(db, sql) == [("953.6 MiB",), ("244.1 MiB",)]


def test_what_a_killed_server_left_on_disk_of_its_queries_is_removed_at_start(home: Path) -> None:
    path = index_file(home)
    left = Path(f"{path}.tmp") / "duckdb_temp_storage-0.tmp"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"x")
    with open_database(path) as db:
        assert not left.exists()
        assert fetch.tuples(db, "SELECT value FROM duckdb_settings() WHERE name = 'temp_directory'") == [
            (f"{path}.tmp",)
        ]
