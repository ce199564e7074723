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
    assert [count(db, "patches"), count(db, "patches"), count(db, "steps")] == [0, 0, 0]
    assert len(asked) == 2
    with db.transaction() as writer:
        writer.add([("patches", {"run_id": "a", "seq": 1})])
    assert [count(db, "patches"), count(db, "steps")] == [1, 0]
    assert len(asked) == 3
    with db.transaction() as writer:
        writer.remove_run("a")
    assert [count(db, "patches"), count(db, "steps")] == [0, 0]
    assert len(asked) == 5


def noted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queries that reach the database from here on."""
    asked: list[str] = []

    def note(name: str, place: int) -> None:
        read = getattr(fetch, name)

        def reads(*query: Any) -> Any:
            asked.append(query[place])
            return read(*query)

        monkeypatch.setattr(fetch, name, reads)

    note("_rows", 2)
    note("_tuples", 1)
    return asked


def test_a_step_reads_only_what_is_shown_of_steps_again(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    run = {"run_id": "a", "task_name": "t", "kernel_class": "matmul", "state": "running", "state_reason": ""}
    now = {"run_id": "a", "last_event_at": 5.0, "engine_s": 0.0}
    with db.transaction() as writer:
        writer.put([("runs", run, True), ("progress", now, True)])
    assert (found := runs.run(db, "a")) is not None
    assert (found.depth, found.engine_s, found.last_event_at) == (None, 0.0, 5.0)
    assert steering.open_approval(db, "a") is None
    asked = noted(monkeypatch)
    with db.transaction() as writer:
        writer.put([("progress", now | {"depth": 3, "engine_s": 1.5, "last_event_at": 7.0}, False)])
        writer.add([("steps", {"run_id": "a", "seq": 2, "step": 1}), ("events", {"run_id": "a", "seq": 2})])
    assert (found := runs.run(db, "a")) is not None
    assert (found.depth, found.engine_s, found.last_event_at) == (3, 1.5, 7.0)
    assert steering.open_approval(db, "a") is None
    assert steering.open_question(db, "a") is None
    assert asked == ["SELECT * FROM progress WHERE run_id = ?"]


def test_an_event_of_a_run_reads_its_row_and_the_few_events_of_it_once_for_all_who_ask(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = {"run_id": "a", "task_name": "t", "kernel_class": "matmul", "state": "running", "state_reason": ""}
    with db.transaction() as writer:
        writer.put([("runs", run, True), ("progress", {"run_id": "a", "engine_s": 0.0}, True)])
        writer.add([("kernels", {"run_id": "a", "seq": 1})])
    queries.family(db, "a", 0)
    asked = noted(monkeypatch)
    with db.transaction() as writer:
        writer.put([("runs", run | {"steering": None, "strategy": "cutegen"}, False)])
        writer.add([("events", {"run_id": "a", "seq": 2, "kind": "DepthFinished"})])
    for question in (steering.steering_state, steering.strategy, steering.open_approval, queries.limit,
                     queries.baseline, queries.allowance, steering.divergences, queries.baselines):  # fmt: skip
        question(db, "a")
    queries.family(db, "a", 0)
    assert [sql.split("FROM ")[1].split(" ")[0] for sql in asked] == ["runs", "progress", "events"]


def test_problems_of_all_runs_are_one_query(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with db.transaction() as writer:
        writer.add(("problems", {"run_id": name, "position": 1, "kind": "missing"}) for name in "ab")
    assert len(queries.problems(db)) == 2
    monkeypatch.delattr(fetch, "_rows")
    assert [[row.run_id for row in queries.problems(db, name)] for name in "abc"] == [["a"], ["b"], []]


def test_what_is_written_and_taken_back_changes_nothing(db: Database) -> None:
    assert count(db, "patches") == 0
    with contextlib.suppress(ZeroDivisionError), db.transaction() as writer:
        writer.add([("patches", {"run_id": "a", "seq": 1})])
        raise ZeroDivisionError
    assert count(db, "patches") == 0


def test_a_row_takes_the_place_of_the_one_of_its_key(db: Database) -> None:
    with db.transaction() as writer:
        writer.put([("kernels", {"run_id": "a", "candidate_id": name, "depth": 1}, True) for name in ("c1", "c2")])
    with db.transaction() as writer:
        writer.put([
            ("kernels", {"run_id": "a", "candidate_id": "c2", "depth": 2}, False),
            ("kernels", {"run_id": "a", "candidate_id": "c3", "depth": 2}, True),
            ("kernels", {"run_id": "a", "candidate_id": "c3", "depth": 3}, False),
            ("kernels", {"run_id": "b", "candidate_id": "c1", "depth": 9}, True),
        ])  # fmt: skip
    found = fetch.tuples(db, "SELECT run_id, candidate_id, depth FROM kernels ORDER BY ALL")
    assert found == [("a", "c1", 1), ("a", "c2", 2), ("a", "c3", 3), ("b", "c1", 9)]


def test_every_query_names_its_tables() -> None:
    for path in Path(fetch.__file__).parent.glob("*.py"):
        for sql in re.findall(r'"""\s*(?:SELECT|WITH)\b.*?"""', path.read_text(), re.DOTALL):
            assert tables_of(sql, SCHEMA) or "{" in sql, sql


def test_a_list_may_be_changed_by_whoever_asked(db: Database) -> None:
    fetch.tuples(db, "SELECT count(*) FROM patches").clear()
    assert fetch.tuples(db, "SELECT count(*) FROM patches") == [(0,)]


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


def test_what_is_made_of_runs_counts_towards_the_limit_and_what_it_is_made_of_is_not_kept() -> None:
    memory, made = Memory(SCHEMA), list[str]()

    def make(run_ids: list[str]) -> dict[str, int]:
        made.extend(run_ids)
        memory.rows("SELECT * FROM steps", "parts", lambda: [0] * MOST_ROWS)
        return dict.fromkeys(run_ids, MOST_ROWS // 2)

    for _ in range(2):
        for run_id in ("a", "a", "b", "c"):
            memory.of_runs(int, {run_id: 1}, make, lambda rows: rows)
    assert made == ["a", "b", "c"] * 2
