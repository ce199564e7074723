"""Walks of a search on the graph of techniques: what was weighed on the way to a kernel, and what a run took."""

from __future__ import annotations

from pathlib import Path

from storage.index import queries
from storage.index.database import Database
from storage.index.queries import TakenRow, WeighedRow
from storage.knowledge.records import WeighedEdge
from storage.run import events as ev
from storage.run.settings import DepthOutcome
from tests.storage.test_queries_predictions import FIRST, made, tell, timed


def ended(step: int, depth: int, name: str | None, value: float, *weighed: WeighedEdge) -> ev.Event:
    outcome = DepthOutcome.ACCEPTED if name else DepthOutcome.GIVEN_UP
    return ev.DepthFinished(step, depth, outcome, name, "c001", False, False, "over", value, weighed)


def test_a_kernel_has_the_edges_of_its_walk_and_a_run_the_sum_of_what_came_back(db: Database, root: Path) -> None:
    tile = WeighedEdge("c001", "start", "tile", 0, 0.0, 0.2, 0.2, True)
    fuse = WeighedEdge("c001", "start", "fuse", 0, 0.0, 0.1, 0.1)
    again = WeighedEdge("c001", "start", "tile", 1, 0.7, 0.2, 0.7, True)
    unroll = WeighedEdge("c002", "tile", "unroll", 0, 0.0, 0.0, 0.0, True)
    tell(
        db, root, *FIRST, ended(2, 0, "c001", 0.0),
        *made(3, "c002", "c001", depth=1), *timed(4, "c002", 2.0), ended(4, 1, "c002", 0.7, tile, fuse),
        *made(5, "c003", "c002", depth=2), ended(6, 2, None, -1.0, again, unroll),
    )  # fmt: skip
    assert queries.walk(db, "r1", "c002") == [
        WeighedRow(0, 1, "start", "tile", 0, 0.0, 0.2, 0.2, True),
        WeighedRow(1, 1, "start", "fuse", 0, 0.0, 0.1, 0.1, False),
    ]
    assert [(row.number, row.target) for row in queries.walk(db, "r1", "c003")] == [(1, "tile"), (2, "unroll")]
    assert queries.walk(db, "r1", "c001") == []
    taken = queries.taken(db, "r1")
    assert [(row.source, row.target, row.visits, round(row.value, 6)) for row in taken] == [
        ("start", "tile", 2, -0.3),
        ("tile", "unroll", 1, -1.0),
    ]
    assert taken[0] == TakenRow("start", "tile", 2, taken[0].value, 0.2)
