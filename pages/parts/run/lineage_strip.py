"""Which kernel was made from which, as a strip under the curve: branches, failures, roll-backs, path to the best."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.parts import client, index, wording
from pages.parts.run import lanes, selection
from pages.parts.run.lanes import Node
from storage import queries
from storage.queries import RunRow
from storage.records import Verdict

_strip = st.components.v2.component(
    "tilewright_lineage",
    html='<div class="lineage">\n<div class="head"><span class="what"></span><span class="key"></span></div>'
    '<div class="scroll" role="group"></div></div>',
    css=client.read("lineage.css"),
    js=client.read("press.js") + client.read("lineage.js"),
)


def draw(run: RunRow) -> None:
    """Draw the strip; a click on a kernel is told through `selection`. Nothing before the first kernel."""
    db = index.current()
    nodes = lanes.place(queries.family(db, run.run_id))
    if not nodes:
        return
    data = {
        "nodes": [shown(node) for node in nodes],
        "roll_backs": [row.from_number for row in queries.roll_backs(db, run.run_id)],
        "note": note(len(nodes), run.attempts),
        "selected": selection.marked(run.run_id),
    }
    _strip(data=data, key="lineage", on_opened_change=lambda: None)


def note(drawn: int, total: int) -> str:
    """What the strip leaves out."""
    return "" if drawn >= total else f"the newest {queries.NEWEST:,} of {total:,} kernels, and the best"


def shown(node: Node) -> dict[str, Any]:
    """One node for the browser."""
    row = node.row
    speed = f"{wording.speedup(row.speedup)}, " if row.speedup else ""
    outcome = speed + wording.outcome(row.verdict, row.is_accepted, row.is_pending)
    rank = ", best" if row.is_best else ", tied with the best" if row.is_tied else ""
    return {
        "id": row.candidate_id, "number": row.number, "lane": node.lane, "parent": node.parent,
        "is_on_path": node.is_on_path, "look": look(node),
        "name": f"kernel {row.number}, depth {row.depth}, {outcome}{rank}: {wording.cut(row.summary, 90)}",
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
