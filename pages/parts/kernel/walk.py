"""The walk through the graph of techniques that a kernel is the end of: N, Q and prior of each edge that was weighed.
What turns rows into words is pure."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.parts import index, wording
from pages.parts.widgets import table
from storage.index import queries
from storage.index.queries import WeighedRow

COLUMNS = [
    table.Column("kernel", "At", "nowrap"),
    table.Column("edge", "Edge"),
    table.Column("visits", "N (walks)", "right", "walks of this run that had taken it; papers call it N"),
    table.Column(
        "value",
        "Q (gains)",
        "right",
        "sum of what came back along it, which papers call Q: log speed-ups, a failure as -1",
    ),
    table.Column("prior", "Prior", "right", "log gain that the knowledge base expects; it stands in for Q/N at first"),
    table.Column("score", "Score", "right", "Q/N and what exploring it is worth; the largest is taken"),
]


def draw(run_id: str, candidate_id: str) -> None:
    """The walk in a line and the edges folded away; nothing in a method without walks."""
    edges = queries.walk(index.current(), run_id, candidate_id)
    if not edges:
        return
    st.markdown("## Walk through the graph of techniques")
    st.markdown(wording.plain(sentence(edges)))
    with st.expander(
        "Edges that were weighed", icon=":material/account_tree:", key="walk:open", on_change="rerun"
    ) as fold:
        if fold.open:
            rows = [table.Row(f"{row.place}", cells(row)) for row in edges]
            table.draw("Edges that were weighed on the walk", COLUMNS, rows, key="walk:edges", is_compact=True)
            st.caption("As they stood before this expansion. Of each kernel on the way, the edges of largest score.")


def sentence(edges: Sequence[WeighedRow]) -> str:
    """The edges that were taken, in order."""
    taken = [row for row in edges if row.is_taken]
    return " → ".join([taken[0].source, *(row.target for row in taken)]) if taken else "No edge was taken."


def cells(row: WeighedRow) -> dict[str, table.Cell]:
    """An edge as a row."""
    badges = [table.pill("taken", "green", "held")] if row.is_taken else []
    return {
        "kernel": f"Kernel {row.number}",
        "edge": table.text(f"{row.source} → {row.target}", badges=badges),
        "visits": f"{row.visits:,}",
        "value": f"{row.value:+.2f}" if row.visits else wording.NONE,
        "prior": f"{row.prior:+.2f}",
        "score": f"{row.score:+.2f}",
    }
