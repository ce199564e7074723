"""What was read is kept as long as it is true."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from storage.index import queries
from storage.index.database import SCHEMA, Database
from storage.index.memory import MOST_ROWS, Memory, frozen, tables_of
from storage.index.queries import fetch, runs, steering

VIEWS = re.findall(r"CREATE VIEW (\w+)", SCHEMA)


def count(db: Database, table: str) -> int:
    return int(fetch.tuples(db, f"SELECT count(*) FROM {table}")[0][0])


def test_a_query_is_run_again_only_when_one_of_its_tables_was_written(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    run = fetch._tuples

    def ask(db: Database, sql: str, parameters: Sequence[object] | Mapping[str, object]) -> list[tuple[Any, ...]]:
        asked.append(sql)
        return run(db, sql, parameters)

    monkeypatch.setattr(fetch, "_tuples", ask)
    assert [count(db, "classes"), count(db, "classes"), count(db, "steps")] == [0, 0, 0]
    assert len(asked) == 2
    with db.transaction() as writer:
        writer.add([("classes", {"run_id": "a", "seq": 1})])
    assert [count(db, "classes"), count(db, "steps")] == [1, 0]
    assert len(asked) == 3
    with db.transaction() as writer:
        writer.remove_run("a")
    assert [count(db, "classes"), count(db, "steps")] == [0, 0]
    assert len(asked) == 5


def test_a_step_reads_only_what_is_shown_of_steps_again(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with db.transaction() as writer:
        writer.add([("runs", {"run_id": "a"}), ("events", {"run_id": "a", "seq": 1, "time": 5.0})])
    assert (found := runs.run(db, "a")) is not None
    assert (found.depth, found.engine_s, found.last_event_at) == (None, 0.0, 5.0)
    asked: list[object] = []
    monkeypatch.setattr(fetch, "_rows", lambda *query: asked.append(query))
    step = {"run_id": "a", "seq": 2, "step": 1, "depth": 3, "seconds": 1.5, "phase": "finished"}
    with db.transaction() as writer:
        writer.add([("steps", step), ("events", {"run_id": "a", "seq": 2, "time": 7.0})])
    assert (found := runs.run(db, "a")) is not None
    assert (found.depth, found.engine_s, found.last_event_at) == (3, 1.5, 7.0)
    assert steering.open_approval(db, "a") is None
    assert steering.open_question(db, "a") is None
    assert asked == []


def test_problems_of_all_runs_are_one_query(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with db.transaction() as writer:
        writer.add(("problems", {"run_id": name, "position": 1, "kind": "missing"}) for name in "ab")
    assert len(queries.problems(db)) == 2
    monkeypatch.delattr(fetch, "_rows")
    assert [[row.run_id for row in queries.problems(db, name)] for name in "abc"] == [["a"], ["b"], []]


def test_what_a_view_shows_is_read_again_when_a_table_behind_it_was_written(db: Database) -> None:
    assert count(db, "timings") == 0
    with db.transaction() as writer:
        for seq, stage in ((1, "check"), (2, "time")):
            row = {"run_id": "a", "seq": seq, "candidate_id": "c", "stage": stage, "verdict": "passed"}
            writer.add([("evaluations", row)])
    assert count(db, "timings") == 1


def test_what_is_written_and_taken_back_changes_nothing(db: Database) -> None:
    assert count(db, "classes") == 0
    with contextlib.suppress(ZeroDivisionError), db.transaction() as writer:
        writer.add([("classes", {"run_id": "a", "seq": 1})])
        raise ZeroDivisionError
    assert count(db, "classes") == 0


@pytest.mark.parametrize("view", VIEWS)
def test_the_tables_behind_every_view_are_known(db: Database, view: str) -> None:
    with db.reader() as cursor:
        cursor.execute("PRAGMA disable_optimizer")  # it would leave out tables that are empty
        ((_, plan),) = cursor.execute(f"EXPLAIN (FORMAT json) SELECT * FROM {view}").fetchall()
    scanned = set(re.findall(r'"Table": .*\.(\w+)"', plan))
    assert scanned
    assert scanned <= tables_of(f"SELECT * FROM {view}", SCHEMA)


def test_every_query_names_its_tables() -> None:
    for path in Path(fetch.__file__).parent.glob("*.py"):
        for sql in re.findall(r'"""\s*(?:SELECT|WITH)\b.*?"""', path.read_text(), re.DOTALL):
            assert tables_of(sql, SCHEMA) or "{" in sql, sql


def test_a_list_may_be_changed_by_whoever_asked(db: Database) -> None:
    fetch.tuples(db, "SELECT count(*) FROM classes").clear()
    assert fetch.tuples(db, "SELECT count(*) FROM classes") == [(0,)]


def test_parameters_that_differ_only_in_kind_are_different() -> None:
    assert frozen([1, "a", ["b"]]) != frozen([True, "a", ["b"]])
    assert frozen({"runs": ["a"], "limit": 3}) == frozen({"limit": 3, "runs": ["a"]})


def test_what_is_kept_has_a_limit() -> None:
    memory = Memory(SCHEMA)
    reads = 0

    def read() -> list[int]:
        nonlocal reads
        reads += 1
        return [0] * (MOST_ROWS // 2)

    for _ in range(2):
        for key in ("a", "b", "c"):
            assert len(memory.rows("SELECT * FROM steps", key, read)) == MOST_ROWS // 2
    assert reads == 6
    assert len(memory.rows("SELECT * FROM steps", "c", read)) == MOST_ROWS // 2
    assert reads == 6
