"""Where the kernels of a family tree stand in a strip: one column each, branches on lanes of their own. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from storage.queries import FamilyRow

LANES = 5


@dataclass(frozen=True, slots=True)
class Node:
    """A kernel in the strip. `parent` is the column of the kernel it was made from, None when that is not shown."""

    row: FamilyRow
    column: int
    lane: int
    parent: int | None
    is_on_path: bool


def place(rows: Sequence[FamilyRow]) -> list[Node]:
    """The path to the best kernel on lane 0, each branch beside it on the first lane that is free there."""
    columns = {row.candidate_id: i for i, row in enumerate(rows)}
    parents = [columns.get(row.parent_id or "") for row in rows]
    path = path_to_best(rows, parents)
    last_child = {parent: i for i, parent in enumerate(parents) if parent is not None}
    lanes: list[int] = []
    busy = [-1] * LANES  # the column up to which each lane is taken
    for i, parent in enumerate(parents):
        lane = 0 if i in path else _branch(parent, path, lanes, busy, parents, i)
        lanes.append(lane)
        busy[lane] = max(busy[lane], i, last_child.get(i, i) if lane else i)
    return [Node(row, i, lanes[i], parents[i], i in path) for i, row in enumerate(rows)]


def _branch(
    parent: int | None, path: set[int], lanes: Sequence[int], busy: Sequence[int], parents: Sequence[int | None], i: int
) -> int:
    """A first child goes on along its parent's lane; another one opens a lane."""
    is_first = parent is not None and parent not in path and parent not in parents[:i]
    if is_first and parent is not None and lanes[parent]:
        return lanes[parent]
    return next((lane for lane in range(1, LANES) if busy[lane] < (i if parent is None else parent)), LANES - 1)


def path_to_best(rows: Sequence[FamilyRow], parents: Sequence[int | None]) -> set[int]:
    """Columns of the best kernel and of all it descends from."""
    at = next((i for i, row in enumerate(rows) if row.is_best), None)
    found: set[int] = set()
    while at is not None and at not in found:
        found.add(at)
        at = parents[at]
    return found
