"""Query results as records: columns become fields by name, texts become the closed sets the fields are typed with."""

from __future__ import annotations

import enum
import functools
import json
import typing
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from storage.index.database import Database
from storage.index.memory import frozen

T = TypeVar("T")


def rows(db: Database, kind: type[T], sql: str, parameters: Sequence[object] | Mapping[str, object] = ()) -> list[T]:
    """Run a query whose columns carry the names of the record's fields."""
    key = (kind, sql, frozen(parameters))
    return db.memory.rows(sql, key, lambda: _rows(db, kind, sql, parameters))


def _rows(db: Database, kind: type[T], sql: str, parameters: Sequence[object] | Mapping[str, object]) -> list[T]:
    with db.reader() as cursor:
        cursor.execute(sql, parameters)
        names = [column[0] for column in cursor.description or ()]
        found = cursor.fetchall()
    converters = _converters(typing.cast(Hashable, kind))
    plan = [(name, converters.get(name)) for name in names]
    return [
        kind(**{n: c(v) if c and v is not None else v for (n, c), v in zip(plan, row, strict=True)}) for row in found
    ]


def one(db: Database, kind: type[T], sql: str, parameters: Sequence[object] | Mapping[str, object] = ()) -> T | None:
    """The first row of a query, or None."""
    found = rows(db, kind, sql, parameters)
    return found[0] if found else None


def tuples(db: Database, sql: str, parameters: Sequence[object] | Mapping[str, object] = ()) -> list[tuple[Any, ...]]:
    """Plain rows."""
    return db.memory.rows(sql, (tuple, sql, frozen(parameters)), lambda: _tuples(db, sql, parameters))


def has_rows(db: Database, table: str, run_id: str) -> bool:
    """Whether a run has rows in a table: asked before a long query, which takes five times as long to find none."""
    return bool(tuples(db, f"SELECT 1 FROM {table} WHERE run_id = ? LIMIT 1", [run_id]))


def _tuples(db: Database, sql: str, parameters: Sequence[object] | Mapping[str, object]) -> list[tuple[Any, ...]]:
    with db.reader() as cursor:
        return cursor.execute(sql, parameters).fetchall()


@functools.cache
def _converters(kind: Hashable) -> dict[str, Callable[[Any], Any]]:
    found = {name: _converter(hint) for name, hint in typing.get_type_hints(typing.cast(type, kind)).items()}
    return {name: convert for name, convert in found.items() if convert}


def _converter(hint: Any) -> Callable[[Any], Any] | None:
    if typing.get_origin(hint) is Mapping:
        return json.loads
    if typing.get_origin(hint) is tuple:
        return tuple
    for option in (hint, *typing.get_args(hint)):
        if isinstance(option, type) and issubclass(option, enum.Enum):
            return option
    return None
