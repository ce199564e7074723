"""An index as large as people will ever have, made from a small one by repeating its rows: 20,000 iterations take
seconds so, and hardly a table is named that a change of the schema would take away."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb

from storage.index.database import Database
from storage.index.ingest import Ingest
from tests import sample_knowledge, samples

LONG, OTHER = "long-run", "other-run"
DEPTHS = 40  # of the run that is repeated
TIMES = ("time", "first_time", "started_at", "ended_at", "timed_at", "created_at")
LINES = ("seq", "first_seq", "judged_seq", "timed_seq", "profiled_seq")
STRATEGIES = ("cutegen", "coder_judge")


def fill(db: Database, root: Path, iterations: int, others: int) -> None:
    """One run of many iterations, at work, and others of usual length; people have said something to each."""
    samples.write_run(root, LONG, seed=3, depths=DEPTHS, ending="running", has_blobs=False)
    for number, strategy in enumerate(STRATEGIES):
        samples.write_run(root, f"{OTHER}-{number}", seed=number, strategy=strategy, has_blobs=False)
    sample_knowledge.write_knowledge(root.parent, attempts=5000)
    Ingest(db, root).catch_up()
    with db.reader() as cursor:
        cursor.execute("BEGIN")
        for table, columns in _tables(cursor).items():
            _repeat_runs(cursor, table, columns, others // len(STRATEGIES))
        kept = ("offsets", "labels", "commands", "snapshots")
        tables = {name: columns for name, columns in _tables(cursor).items() if "seq" in columns and name not in kept}
        steps = _Stretch(cursor)
        times = max(1, iterations // steps.iterations)
        for table, columns in tables.items():
            steps.repeat(cursor, table, columns, times)
        steps.follow(cursor, times)
        cursor.execute("COMMIT")
        cursor.execute("CHECKPOINT")
        db.memory.wrote(_tables(cursor))


def _tables(cursor: duckdb.DuckDBPyConnection) -> dict[str, Mapping[str, str]]:
    """The tables with rows of runs: of each the types of its columns."""
    found = cursor.execute(
        "SELECT table_name, map(list(column_name), list(data_type)) FROM duckdb_columns() "
        "WHERE table_name IN (SELECT table_name FROM duckdb_tables()) GROUP BY table_name"
    ).fetchall()
    return dict(found)


def _repeat_runs(cursor: duckdb.DuckDBPyConnection, table: str, columns: Mapping[str, str], times: int) -> None:
    """The other runs under further names, each begun a little later."""
    moved = {name: f"{name} + n" for name in TIMES} | {"run_id": "run_id || '-' || n"}
    picks = ", ".join(f"{moved[name]} AS {name}" if name in moved else f'"{name}"' for name in columns)
    cursor.execute(
        f"INSERT INTO {table} BY NAME SELECT {picks} FROM {table}, range(1, {times}) AS again(n) "
        f"WHERE run_id LIKE '{OTHER}-%'"
    )


class _Stretch:
    """The rows from the long run's first step to the end of its last whole depth, which are repeated."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        found = cursor.execute(
            "SELECT (SELECT min(first_seq) FROM steps WHERE run_id = $run), max(d.seq), max(d.step), "
            "max(d.depth) + 1, max(d.time), (SELECT count(*) FROM kernels WHERE run_id = $run AND seq < max(d.seq)) "
            "FROM depths d WHERE d.run_id = $run", {"run": LONG},
        ).fetchall()  # fmt: skip
        self.first, self.last, step, depth, end, self.iterations = found[0]
        sql = "SELECT min(first_time) FROM steps WHERE run_id = $run"
        began = cursor.execute(sql, {"run": LONG}).fetchall()[0][0]
        self.by = dict.fromkeys(LINES, self.last - self.first + 1) | dict.fromkeys(TIMES, end - began)
        self.by |= {"step": step, "depth": depth, "number": self.iterations}

    def repeat(self, cursor: duckdb.DuckDBPyConnection, table: str, columns: Mapping[str, str], times: int) -> None:
        """What comes after is moved behind the last one."""
        picks = ", ".join(self._moved(name, kind, times) for name, kind in columns.items())
        cursor.execute(
            f"CREATE TEMP TABLE more AS SELECT {picks} FROM {table}, range(0, {times}) AS again(n) "
            f"WHERE run_id = $run AND seq >= {self.first} AND (seq <= {self.last} OR n = {times - 1})",
            {"run": LONG},
        )
        cursor.execute(f"DELETE FROM {table} WHERE run_id = $run AND seq >= {self.first}", {"run": LONG})
        cursor.execute(f"INSERT INTO {table} BY NAME SELECT * FROM more ORDER BY seq; DROP TABLE more")

    def follow(self, cursor: duckdb.DuckDBPyConnection, times: int) -> None:
        """What the run as a whole is told by."""
        more, asked = times - 1, {"run": LONG}
        cursor.execute(
            f"UPDATE progress SET last_seq = last_seq + {more * self.by['seq']}, "
            f"depth = depth + {more * self.by['depth']}, "
            f"finished_steps = finished_steps + {more * self.by['step']} WHERE run_id = $run", asked,
        )  # fmt: skip
        cursor.execute(
            f"UPDATE runs SET settled_seq = settled_seq + {more * self.by['seq']}, model_calls = (SELECT count(*) "
            "FROM calls WHERE run_id = $run) WHERE run_id = $run", asked,
        )  # fmt: skip

    def _moved(self, name: str, kind: str, times: int) -> str:
        if name in self.by:
            return f"{name} + n * {self.by[name]} AS {name}"
        if name == "is_best":
            return f"is_best AND n = {times - 1} AS is_best"
        if name == "predictions":
            return f"list_transform(predictions, lambda x: x + n * {self.by['seq']}) AS predictions"
        if kind == "VARCHAR":
            return f'{self._kernel(name)} AS "{name}"'
        if kind == "VARCHAR[]":
            return f"""list_transform("{name}", lambda x: {self._kernel("x")}) AS "{name}\""""
        return f'"{name}"'

    def _kernel(self, text: str) -> str:
        number = f"TRY_CAST({text}[2:] AS BIGINT) + n * {self.iterations}"
        return f"CASE WHEN regexp_full_match({text}, 'c\\d+') THEN printf('c%03d', {number}) ELSE {text} END"
