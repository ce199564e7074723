"""What was read from the index, kept until something is written to a table that it was read from."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")
MOST_ROWS = 200_000  # kept in all; then everything is forgotten, and what is shown is soon here again


class Memory:
    """Rows by the query that found them. For one writing thread and many reading ones.

    A query reads the tables that its text names. Naming one too many costs a second look; leaving one out is not
    possible.
    """

    def __init__(self, schema: str) -> None:
        self._schema = schema
        self._written: dict[str, int] = {}
        self._found: dict[Hashable, tuple[int, tuple[object, ...]]] = {}
        self._rows = 0

    def wrote(self, tables: Iterable[str]) -> None:
        """These tables have new rows, which readers can see from now on."""
        for table in tables:
            self._written[table] = self._written.get(table, 0) + 1

    def rows(self, sql: str, key: Hashable, read: Callable[[], Sequence[T]]) -> list[T]:
        """What `read` returns, read once; the list is the caller's own.

        The stamp is taken first: what is kept under it may be newer, and is then read once more, but never older.
        """
        stamp = sum(self._written.get(table, 0) for table in tables_of(sql, self._schema))
        kept = self._found.get(key)
        if kept is None or kept[0] != stamp:
            kept = stamp, tuple(read())
            self._keep(key, kept)
        return list(kept[1])  # type: ignore[arg-type]

    def _keep(self, key: Hashable, kept: tuple[int, tuple[object, ...]]) -> None:
        old = self._found.get(key)
        self._rows += len(kept[1]) - len(old[1]) if old else 1 + len(kept[1])
        if self._rows > MOST_ROWS:
            self._found, self._rows = {}, 1 + len(kept[1])
        self._found[key] = kept


@functools.lru_cache(maxsize=1024)
def tables_of(sql: str, schema: str) -> frozenset[str]:
    """The tables of a schema that a query reads."""
    return _tables(schema).intersection(re.findall(r"\w+", sql))


@functools.lru_cache(maxsize=2)
def _tables(schema: str) -> frozenset[str]:
    return frozenset(re.findall(r"CREATE TABLE (\w+)", schema))


def frozen(value: object) -> Hashable:
    """Parameters of a query as a key."""
    if isinstance(value, Mapping):
        return tuple((name, frozen(item)) for name, item in sorted(value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(frozen, value))
    return (type(value), value)
