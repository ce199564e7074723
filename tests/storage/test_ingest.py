"""Every journal line is in the index exactly once, whenever and however often it is read."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.index import queries
from storage.index.database import Database, index_file, open_database
from storage.index.ingest import Ingest, Lag
from tests.examples import examples
from tests.samples import write_run
from tests.storage.children import child, line_from
from tests.storage.index_dump import dump, rebuilt

READER = """
import sys
from pathlib import Path
from storage.index.database import open_database
from storage.index.ingest import Ingest
with open_database(Path(sys.argv[1])) as db:
    ingest = Ingest(db, Path(sys.argv[2]))
    while True:
        ingest.catch_up()
        print(db.version, flush=True)
"""


def test_a_second_look_changes_nothing(db: Database, root: Path) -> None:
    write_run(root, depths=3)
    ingest = Ingest(db, root)
    ingest.catch_up()
    first, version = dump(db), db.version
    ingest.catch_up()
    assert dump(db) == first
    assert db.version == version


def test_all_tables_have_rows_and_every_line_is_kept(db: Database, root: Path) -> None:
    run = write_run(root, depths=8, ending="finished")
    write_run(root, "steered", depths=8, ending="waiting")
    write_run(root, "judged", depths=3, strategy="coder_judge")
    write_run(root, "asking", depths=3, knowledge="on", strategy="graph_search")
    Ingest(db, root).catch_up()
    rows = dump(db)
    empty = {name for name, found in rows.items() if not found}
    assert empty == {"labels", "problems", "snapshots"}
    lines = [event.json for event in queries.events(db, "sample", limit=10_000)]
    assert lines == run.journal_file.read_text().splitlines()


@settings(max_examples=examples(6), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(1, 40_000), min_size=1, max_size=6))
def test_a_journal_that_arrives_in_any_pieces_gives_the_same_rows(tmp_path: Path, cuts: list[int]) -> None:
    """Pieces end anywhere in a line; the index is closed and opened again between them."""
    work = tmp_path / "pieces"
    shutil.rmtree(work, ignore_errors=True)
    run = write_run(work / "runs", depths=3)
    whole, asked = run.journal_file.read_bytes(), run.commands_file.read_bytes()
    run.commands_file.write_bytes(asked[: len(asked) // 2])
    run.journal_file.write_bytes(b"")
    for end in [*sorted(cuts), len(whole)]:
        with open(run.journal_file, "ab") as file:
            file.write(whole[run.journal_file.stat().st_size : end])
        with open_database(index_file(work)) as db:
            Ingest(db, work / "runs").catch_up()
    with open(run.commands_file, "ab") as file:
        file.write(asked[len(asked) // 2 :])
    with open_database(index_file(work)) as db:
        Ingest(db, work / "runs").catch_up()
        assert dump(db) == rebuilt(work / "again", work / "runs")
        assert len(dump(db)["events"]) == whole.count(b"\n")


def test_a_torn_last_line_waits_for_its_newline(db: Database, root: Path) -> None:
    run = write_run(root, depths=1)
    whole = run.journal_file.read_bytes()
    run.journal_file.write_bytes(whole[:-9])
    ingest = Ingest(db, root)
    ingest.catch_up()
    assert len(dump(db)["events"]) == whole.count(b"\n") - 1
    with open(run.journal_file, "ab") as file:
        file.write(whole[-9:])
    ingest.catch_up()
    assert len(dump(db)["events"]) == whole.count(b"\n")
    assert dump(db)["problems"] == []


def test_a_reader_killed_again_and_again_reads_every_line_once(home: Path, root: Path) -> None:
    for number in range(2):
        write_run(root, f"run-{number}", seed=number, depths=60)
        with child(READER, index_file(home), root) as reader:
            line_from(reader)
            os.kill(reader.pid, signal.SIGKILL)
            reader.wait()
    with open_database(index_file(home)) as db:
        assert db.set_aside is None
        Ingest(db, root).catch_up()
        assert dump(db) == rebuilt(home / "again", root)


def test_a_damaged_line_in_the_middle_is_shown_and_left_out(db: Database, root: Path) -> None:
    run = write_run(root, depths=1)
    lines = run.journal_file.read_bytes().splitlines(keepends=True)
    damaged = [b"\0\0\0\n", b"\xff\xfe\n", b'{"seq":1,"time":1,"kind":"BudgetWarned","event":{}}\n', b"\n"]
    run.journal_file.write_bytes(b"".join([*lines[:5], *damaged, *lines[5:]]))
    Ingest(db, root).catch_up()
    problems = queries.problems(db, "sample")
    start = len(b"".join(lines[:5]))
    assert [(p.file, p.position) for p in problems] == [("journal.jsonl", start + at) for at in (0, 4, 7)]
    assert {problem.kind for problem in problems} == {"unreadable"}
    assert len(dump(db)["events"]) == len(lines)


def test_a_number_too_large_for_a_column_is_a_problem_and_nothing_worse(db: Database, root: Path) -> None:
    run = write_run(root, depths=1)
    seq = run.journal_file.read_text().count("\n") + 1
    started = f'{{"pid":{10**20},"is_resumed":false}}'
    line = f'{{"seq":{seq},"time":1.0,"kind":"EngineStarted","event":{started}}}\n'
    line += '{"seq":99999999999999999999,"time":1.0,"kind":"EngineStarted","event":{"pid":1,"is_resumed":false}}\n'
    run.journal_file.write_text(run.journal_file.read_text() + line)
    Ingest(db, root).catch_up()
    assert [problem.file for problem in queries.problems(db)] == ["journal.jsonl"]
    assert queries.run(db, "sample")


def test_a_damaged_command_is_shown_and_the_others_are_read(db: Database, root: Path) -> None:
    run = write_run(root, depths=4)
    asked = run.commands_file.read_text()
    run.commands_file.write_text("nonsense\n" + asked)
    Ingest(db, root).catch_up()
    assert [problem.file for problem in queries.problems(db, "sample")] == ["commands.jsonl"]
    assert len(queries.commands(db, "sample")) == asked.count("\n")


def test_damaged_settings_are_shown_and_do_not_hold_up_other_runs(db: Database, root: Path) -> None:
    write_run(root, "broken", depths=1).settings_file.write_text("{")
    write_run(root, "whole", depths=1)
    Ingest(db, root).catch_up()
    assert [run.run_id for run in queries.overview(db)] == ["whole"]
    assert [(p.run_id, p.file) for p in queries.problems(db)] == [("broken", "run.json")]


def test_a_copy_of_a_runs_folder_is_ignored_and_leaves_nothing_behind_when_it_goes(
    db: Database, home: Path, root: Path
) -> None:
    run = write_run(root, "whole", depths=2)
    ingest = Ingest(db, root)
    ingest.catch_up()
    alone = dump(db)
    shutil.copytree(run.path, root / "whole-cut")
    for _ in range(3):
        ingest.catch_up()
    assert [row.run_id for row in queries.overview(db)] == ["whole"]
    assert [(p.run_id, p.kind, p.message) for p in queries.problems(db)] == [("whole-cut", "foreign", "whole")]
    assert ingest.lag().size == 0
    again = Ingest(db, root)
    again.catch_up()
    assert {table: len(rows) for table, rows in dump(db).items() if table != "problems"} == {
        table: len(rows) for table, rows in alone.items() if table != "problems"
    }
    shutil.move(root / "whole-cut", home / "elsewhere")
    again.catch_up()
    assert dump(db) == alone


def test_a_folder_that_takes_the_name_in_its_settings_again_is_a_run_again(db: Database, root: Path) -> None:
    run = write_run(root, "whole", depths=1)
    run.path.rename(root / "other")
    ingest = Ingest(db, root)
    ingest.catch_up()
    assert queries.overview(db) == []
    (root / "other").rename(root / "whole")
    ingest.catch_up()
    assert [(row.run_id, row.attempts > 0) for row in queries.overview(db)] == [("whole", True)]


def test_a_file_that_cannot_be_read_does_not_hold_up_other_runs(db: Database, root: Path) -> None:
    write_run(root, "broken", depths=1).journal_file.unlink()
    (root / "broken" / "journal.jsonl").mkdir()
    (root / "broken" / "journal.jsonl" / "x").write_text("")
    write_run(root, "whole", depths=1)
    ingest = Ingest(db, root)
    ingest.catch_up()
    assert queries.attempts(db, "whole")
    assert "journal.jsonl is a folder, not a file" in ingest.failure
    shutil.rmtree(root / "broken")
    ingest.catch_up()
    assert ingest.failure == ""


def test_a_journal_that_shrank_is_read_again_from_its_start(db: Database, home: Path, root: Path) -> None:
    run = write_run(root, depths=5)
    write_run(root, "other", depths=2)
    ingest = Ingest(db, root)
    ingest.catch_up()
    lines = run.journal_file.read_bytes().splitlines(keepends=True)
    with open(run.journal_file, "r+b") as file:
        file.truncate(len(b"".join(lines[:10])))
    ingest.catch_up()
    assert dump(db) == rebuilt(home / "again", root)
    assert [e.seq for e in queries.events(db, "sample")] == list(range(1, 11))


def test_a_journal_replaced_by_a_longer_one_is_read_again(db: Database, home: Path, root: Path) -> None:
    run = write_run(root, depths=2)
    ingest = Ingest(db, root)
    ingest.catch_up()
    other = write_run(home / "elsewhere", depths=6, seed=1)
    other.journal_file.replace(run.journal_file)
    ingest.catch_up()
    assert dump(db) == rebuilt(home / "again", root)


def test_a_shrunk_journal_is_noticed_by_an_index_opened_later(home: Path, root: Path) -> None:
    run = write_run(root, depths=5)
    with open_database(index_file(home)) as db:
        Ingest(db, root).catch_up()
    with open(run.journal_file, "r+b") as file:
        file.truncate(len(file.readline()))
    with open_database(index_file(home)) as db:
        Ingest(db, root).catch_up()
        assert len(dump(db)["events"]) == 1


def test_a_run_deleted_on_disk_disappears(db: Database, home: Path, root: Path) -> None:
    write_run(root, "gone", depths=2)
    write_run(root, "kept", depths=2)
    ingest = Ingest(db, root)
    ingest.catch_up()
    version = db.version
    shutil.rmtree(root / "gone")
    ingest.catch_up()
    assert [run.run_id for run in queries.overview(db)] == ["kept"]
    assert dump(db) == rebuilt(home / "again", root)
    assert db.version > version


def test_a_run_deleted_while_no_index_was_open_disappears(home: Path, root: Path) -> None:
    write_run(root, "gone", depths=2)
    with open_database(index_file(home)) as db:
        Ingest(db, root).catch_up()
    shutil.rmtree(root)
    with open_database(index_file(home)) as db:
        Ingest(db, root).catch_up()
        assert {name for name, found in dump(db).items() if found} == set()


def test_a_run_with_settings_and_nothing_else_is_a_run(db: Database, root: Path) -> None:
    run = write_run(root, depths=1)
    run.journal_file.unlink()
    run.commands_file.unlink()
    Ingest(db, root).catch_up()
    assert queries.count_runs(db) == 1


def test_a_very_long_journal_does_not_keep_the_others_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.index.ingest.ROUND_BYTES", 1)
    monkeypatch.setattr("storage.index.ingest.BATCH_BYTES", 1)
    monkeypatch.setattr("storage.index.chunks.CHUNK_BYTES", 20_000)
    long = write_run(tmp_path / "runs", "long", depths=30)
    short = write_run(tmp_path / "runs", "short", depths=1)
    os.utime(long.settings_file, (2e9, 2e9))
    os.utime(short.settings_file, (1e9, 1e9))
    with open_database(index_file(tmp_path)) as db:
        seen: list[set[str]] = []
        monkeypatch.setattr(db, "mark_changed", lambda names: seen.append(set(names)))
        ingest = Ingest(db, tmp_path / "runs")
        ingest.catch_up()
        assert ingest.lag().size == 0
        first, last = seen.index({"short"}), len(seen)
        assert {"long"} in seen[:first], "the newest comes first"
        assert {"long"} in seen[first:last], "and waits while the other is read"
        assert len(queries.events(db, "long", 0, 10_000)) == long.journal_file.read_bytes().count(b"\n")


def test_how_far_the_index_is_behind_is_told_in_bytes_and_seconds(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "runs", "late", depths=2)
    with open_database(index_file(tmp_path)) as db:
        ingest = Ingest(db, tmp_path / "runs")
        os.utime(folder.journal_file, (1e9, 1e9))
        size = sum(path.stat().st_size for path in folder.path.iterdir() if path.is_file())
        assert ingest.lag().size == size
        assert ingest.lag().seconds > 1e8
        ingest.catch_up()
        assert ingest.lag() == Lag(0, 0.0)
        with open(folder.journal_file, "ab") as journal:
            journal.write(b'{"torn')
        assert ingest.lag().size == 6


NO_INSTANCES = """
import ctypes, sys
from pathlib import Path
from storage.index.database import in_memory
from storage.index.ingest import Ingest
libc = ctypes.CDLL("libc.so.6")
try:  # in a namespace of its own, so that tests beside this one can watch what they want
    assert libc.unshare(0x10000000) == 0
    Path("/proc/sys/user/max_inotify_instances").write_text("0")
except (AssertionError, OSError):
    sys.exit(print("no namespace"))
assert libc.inotify_init1(0) < 0
with in_memory() as db:
    ingest = Ingest(db, Path(sys.argv[1]))
    ingest.start()
    assert db.wait_until(lambda: db.run_version("sample") > 0, 60)
    ingest.stop()
print("followed")
"""


def test_runs_are_followed_where_all_inotify_instances_are_used_up(root: Path) -> None:
    write_run(root, depths=2)
    with child(NO_INSTANCES, root) as follower:
        if (said := line_from(follower)) == "no namespace":
            pytest.skip("this machine allows no user namespaces")
        assert said == "followed"
