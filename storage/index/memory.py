"""What was read from the index, kept until something is written to a table that it was read from."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
_Kept = tuple[int, tuple[Any, ...]]
MOST_ROWS = 200_000  # kept in all; then everything is forgotten, and what is shown is soon here again


class Memory:
    """Rows by the query that found them. For one writing thread and many reading ones.

    A query reads the tables that its text names. Naming one too many costs a second look; leaving one out is not
    possible.
    """

    def __init__(self, schema: str) -> None:
        self._schema = schema
        self._written: dict[str, int] = {}
        self._found: dict[Hashable, _Kept] = {}
        self._sizes: dict[Hashable, int] = {}
        self._rows = 0
        self._making = threading.local()

    def wrote(self, tables: Iterable[str]) -> None:
        """These tables have new rows, which readers can see from now on."""
        for table in tables:
            self._written[table] = self._written.get(table, 0) + 1

    def rows(self, sql: str, key: Hashable, read: Callable[[], Sequence[T]]) -> list[T]:
        """What `read` returns, read once; the list is the caller's own.

        The stamp is taken first: what is kept under it may be newer, and is then read once more, but never older.
        """
        if getattr(self._making, "is_so", False):
            return list(read())
        stamp = sum(self._written.get(table, 0) for table in tables_of(sql, self._schema))
        kept = self._found.get(key)
        if kept is None or kept[0] != stamp:
            kept = stamp, tuple(read())
            self._keep(key, kept, len(kept[1]))
        return list(kept[1])

    def of_runs(
        self,
        kind: type[T],
        versions: Mapping[str, int],
        make: Callable[[list[str]], Mapping[str, T]],
        rows_in: Callable[[T], int],
    ) -> dict[str, T]:
        """What `make` makes of each of these runs, made again for those alone that have another version than then; a
        run that it makes nothing of is left out. The rows that it is made of are not kept beside it.

        `versions` are taken first, as the stamp of `rows` is. `rows_in` says as how many rows something counts.
        """
        found = {run_id: self._found.get((kind, run_id)) for run_id in versions}
        if stale := [run_id for run_id, kept in found.items() if kept is None or kept[0] != versions[run_id]]:
            made = self._made(make, stale)
            for run_id in stale:
                result = made.get(run_id)
                kept = versions[run_id], () if result is None else (result,)
                self._keep((kind, run_id), kept, 0 if result is None else rows_in(result))
                found[run_id] = kept
        return {run_id: kept[1][0] for run_id, kept in found.items() if kept and kept[1]}

    def _made(self, make: Callable[[list[str]], Mapping[str, T]], run_ids: list[str]) -> Mapping[str, T]:
        self._making.is_so = True
        try:
            return make(run_ids)
        finally:
            self._making.is_so = False

    def _keep(self, key: Hashable, kept: _Kept, rows: int) -> None:
        self._rows += 1 + rows - self._sizes.get(key, 0)
        if self._rows > MOST_ROWS:
            self._found, self._sizes, self._rows = {}, {}, 1 + rows
        self._found[key], self._sizes[key] = kept, 1 + rows


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
