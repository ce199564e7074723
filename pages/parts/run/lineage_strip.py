"""Which kernel was made from which, as a strip under the curve: one column each, branches on lanes of their own,
failures, roll-backs, the path to the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.parts import client, index, method, wording
from pages.parts.run import selection
from pages.parts.status import beside_base
from storage.index import queries
from storage.index.queries import FamilyRow, RunRow
from storage.results.vocabulary import Verdict
from storage.run.settings import Origin, RunState

LANES = 12  # at most: the last is for all branches that find no other

_strip = st.components.v2.component(
    "tilewright_lineage",
    html='<div class="lineage">\n<div class="head"><span class="what"></span><span class="key"></span></div>'
    '<div class="scroll" role="group"></div></div>',
    css=client.read("run/lineage.css"),
    js=client.read("widgets/press.js") + client.read("run/lineage.js"),
)


def draw(run: RunRow) -> None:
    """Draw the strip; a click on a kernel is told through `selection`. Nothing before the first kernel."""
    db = index.current()
    family = queries.family(db, run.run_id)
    nodes, kernels = place(family), {row.candidate_id: row for row in family}
    if not nodes:
        return
    step = method.words(run.run_id).step
    data = {
        "nodes": [
            shown(node, step, kernels.get(node.row.base_id or ""), run.state is RunState.STOPPED, run.is_on_gpu)
            for node in nodes
        ],
        "roll_backs": [row.from_number for row in queries.roll_backs(db, run.run_id)],
        "note": note(len(nodes), run.attempts),
        "selected": selection.marked(run.run_id),
    }
    _strip(data=data, key="lineage", on_opened_change=lambda: None)


def note(drawn: int, total: int) -> str:
    """What the strip leaves out."""
    return "" if drawn >= total else f"the newest {queries.NEWEST:,} of {total:,} kernels, and the best"


def shown(
    node: Node, step: str, base: FamilyRow | None = None, is_stopped: bool = False, is_on_gpu: bool = False
) -> dict[str, Any]:
    """One node for the browser; `base` is the kernel that its step index started from."""
    row = node.row
    speed = f"{wording.speedup(row.speedup, row.noise)}, " if row.speedup else ""
    outcome = speed + wording.outcome(row, beside_base.is_slower(row, base, is_on_gpu=is_on_gpu), is_stopped)
    rank = ", best" if row.is_best else ", tied with the best" if row.is_tied else ""
    return {
        "id": row.candidate_id, "number": row.number, "lane": node.lane, "parent": node.parent,
        "second_parent": node.second_parent,
        "is_on_path": node.is_on_path, "look": look(node), "is_tuned": row.origin is Origin.TUNED,
        "name": f"kernel {row.number}, {step} {row.depth}, {outcome}{rank}: {wording.cut(row.summary, 90)}",
    }  # fmt: skip


def look(node: Node) -> str:
    """How a node is drawn: by shape, so that colour never stands alone."""
    row = node.row
    if row.is_best:
        return "best"
    if row.verdict is None:
        return "open"
    if row.verdict is not Verdict.PASSED:
        return "failed"
    if row.is_tied:
        return "tied"
    return "accepted" if row.is_accepted else "correct"


@dataclass(frozen=True, slots=True)
class Node:
    """A kernel in the strip. `parent` is the column of the kernel it was made from, None when that is not shown;
    `second_parent` that of a crossover's other parent."""

    row: FamilyRow
    column: int
    lane: int
    parent: int | None
    is_on_path: bool
    second_parent: int | None = None


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
    seconds = [columns.get(row.second_parent_id or "") for row in rows]
    return [Node(row, i, lanes[i], parents[i], i in path, seconds[i]) for i, row in enumerate(rows)]


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
    columns: set[int] = set()
    while at is not None and at not in columns:
        columns.add(at)
        at = parents[at]
    return columns
