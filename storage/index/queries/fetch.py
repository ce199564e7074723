"""Query results as records: columns become fields by name, texts become the closed sets the fields are typed with; and
lines of journals as the events that they are.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import typing
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

from storage import codec
from storage.index.database import Database
from storage.index.memory import frozen
from storage.run import journal
from storage.run.events import (
    BaselineMeasured,
    CommandAcknowledged,
    CommandEffective,
    CommandRefused,
    Diverged,
    LimitMeasured,
    Ranked,
)

T = TypeVar("T")
E = TypeVar("E", bound=Any)


@dataclass(frozen=True, slots=True)
class RunEntry(Generic[E]):
    """An entry of a run's journal: the event in line `seq`, at a moment in seconds since the epoch."""

    run_id: str
    seq: int
    at: float
    event: E


# A run has few of these, and each event makes a page ask for each of them again: one query reads them all.
_FEW: tuple[type[Any], ...] = (
    BaselineMeasured, CommandAcknowledged, CommandEffective, CommandRefused, Diverged, LimitMeasured, Ranked,
)  # fmt: skip


@overload
def events(
    db: Database,
    run_id: str | None,
    kind: type[E],
    /,
    *,
    where: str = ...,
    parameters: Mapping[str, object] | None = ...,
    newest: int | None = ...,
) -> list[RunEntry[E]]: ...
@overload
def events(
    db: Database,
    run_id: str | None,
    /,
    *kinds: type[Any],
    where: str = ...,
    parameters: Mapping[str, object] | None = ...,
    newest: int | None = ...,
) -> list[RunEntry[Any]]: ...
def events(
    db: Database,
    run_id: str | None,
    /,
    *kinds: type[Any],
    where: str = "TRUE",
    parameters: Mapping[str, object] | None = None,
    newest: int | None = None,
) -> list[RunEntry[Any]]:
    """Events of a run, or of all, of these kinds, oldest first; `where` tells which by the columns of `events`,
    `newest` how many of the last ones."""
    if run_id is not None and where == "TRUE" and newest is None and set(kinds) < set(_FEW):
        return [entry for entry in events(db, run_id, *_FEW) if isinstance(entry.event, kinds)]
    asked = {"kinds": [journal.name_of(kind) for kind in kinds]} | ({"run": run_id} if run_id is not None else {})
    which = f"kind IN (SELECT unnest($kinds)) AND ({where})" + (" AND run_id = $run" if run_id is not None else "")
    sql = f"SELECT run_id, seq, time, json FROM events WHERE {which} ORDER BY {'seq' if run_id else 'run_id, seq'}"
    if newest is not None:
        sql = f"SELECT * FROM ({sql} DESC LIMIT {newest}) ORDER BY seq"
    given = asked | dict(parameters or {})

    def read() -> list[RunEntry[Any]]:
        return [RunEntry(run, seq, at, journal.decode(line).event) for run, seq, at, line in _tuples(db, sql, given)]

    return db.memory.rows(sql, (RunEntry, sql, frozen(given)), read)


@overload
def of_kernel(db: Database, run_id: str, candidate_id: str | None, kind: type[E], /) -> list[RunEntry[E]]: ...
@overload
def of_kernel(db: Database, run_id: str, candidate_id: str | None, /, *kinds: type[Any]) -> list[RunEntry[Any]]: ...
def of_kernel(db: Database, run_id: str, candidate_id: str | None, /, *kinds: type[Any]) -> list[RunEntry[Any]]:
    """Events about one kernel, oldest first; none about no kernel."""
    if candidate_id is None:
        return []
    return events(db, run_id, *kinds, where="candidate_id = $candidate", parameters={"candidate": candidate_id})


def record(kind: type[T], text: str | None) -> T | None:
    """What a column holds as the JSON of a record; None where it is NULL."""
    return None if text is None else typing.cast(T, codec.from_plain(kind, json.loads(text)))


def rows(db: Database, kind: type[T], sql: str, parameters: Sequence[object] | Mapping[str, object] = ()) -> list[T]:
    """Run a query whose columns carry the names of the record's fields."""
    key = (kind, sql, frozen(parameters))
    return db.memory.rows(sql, key, lambda: _rows(db, kind, sql, parameters))


def _rows(db: Database, kind: type[T], sql: str, parameters: Sequence[object] | Mapping[str, object]) -> list[T]:
    with db.reader() as cursor:
        cursor.execute(sql, parameters)
        names = [column[0] for column in cursor.description or ()]
        fetched = cursor.fetchall()
    converters = _converters(typing.cast(Hashable, kind))
    plan = [(name, converters.get(name)) for name in names]
    return [
        kind(**{n: c(v) if c and v is not None else v for (n, c), v in zip(plan, row, strict=True)}) for row in fetched
    ]


def one(db: Database, kind: type[T], sql: str, parameters: Sequence[object] | Mapping[str, object] = ()) -> T | None:
    """The first row of a query, or None."""
    fetched = rows(db, kind, sql, parameters)
    return fetched[0] if fetched else None


def tuples(db: Database, sql: str, parameters: Sequence[object] | Mapping[str, object] = ()) -> list[tuple[Any, ...]]:
    """Plain rows."""
    return db.memory.rows(sql, (tuple, sql, frozen(parameters)), lambda: _tuples(db, sql, parameters))


def of_run(db: Database, run_id: str, *columns: str, table: str = "runs") -> tuple[Any, ...] | None:
    """Columns of a run's one row in a table; None for a run that is not in the index. The row is read once for all who
    ask: on a page they are many, and each event makes them ask again."""
    stored = rows(db, dict, f"SELECT * FROM {table} WHERE run_id = ?", [run_id])
    return tuple(stored[0][column] for column in columns) if stored else None


def of_runs(db: Database, run_ids: Sequence[str], *columns: str, table: str = "runs") -> dict[str, tuple[Any, ...]]:
    """As `of_run`, of several runs; one that is not in the index is left out."""
    if len(run_ids) == 1:  # as on the page of a run, where others ask for that row too
        stored = of_run(db, run_ids[0], *columns, table=table)
        return {run_ids[0]: stored} if stored else {}
    sql = f"SELECT run_id, {', '.join(columns)} FROM {table} WHERE run_id IN (SELECT unnest(?::VARCHAR[]))"
    return {run_id: tuple(row) for run_id, *row in tuples(db, sql, [list(run_ids)])}


def has_rows(db: Database, table: str, run_id: str) -> bool:
    """Whether a run has rows in a table: asked before a long query, which takes five times as long to find none."""
    return bool(tuples(db, f"SELECT 1 FROM {table} WHERE run_id = ? LIMIT 1", [run_id]))


def _tuples(db: Database, sql: str, parameters: Sequence[object] | Mapping[str, object]) -> list[tuple[Any, ...]]:
    with db.reader() as cursor:
        return cursor.execute(sql, parameters).fetchall()


@functools.cache
def _converters(kind: Hashable) -> dict[str, Callable[[Any], Any]]:
    converters = {name: _converter(hint) for name, hint in typing.get_type_hints(typing.cast(type, kind)).items()}
    return {name: convert for name, convert in converters.items() if convert}


def _converter(hint: Any) -> Callable[[Any], Any] | None:
    if typing.get_origin(hint) is Mapping:
        return json.loads
    if typing.get_origin(hint) is tuple:
        return tuple
    for option in (hint, *typing.get_args(hint)):
        if dataclasses.is_dataclass(option):
            return functools.partial(record, typing.cast(type, option))
        if isinstance(option, type) and issubclass(option, enum.Enum):
            return option
    return None
