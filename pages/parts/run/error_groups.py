"""What kernels of a run failed of: one row per verdict and message, with how many and which."""

from __future__ import annotations

import streamlit as st

from pages.parts import index, wording
from pages.parts.widgets import table
from storage import queries
from storage.queries import ErrorGroupRow, RunRow

SHOWN = 12
COLUMNS = [
    table.Column("count", "Kernels", "right", "kernels with this error"),
    table.Column("what", "Message", help="of the newest kernel; messages that differ only in numbers count as one"),
    table.Column("which", "Newest kernels"),
]


def draw(run: RunRow) -> None:
    """Draw the groups; nothing while nothing has failed."""
    if not run.failed:
        return
    found = queries.error_groups(index.current(), run.run_id, SHOWN)
    st.markdown(f"## Errors by message :gray[{wording.counted(run.failed, 'kernel')}]")
    rows = [table.Row(f"{i}", cells(run, group)) for i, group in enumerate(found)]
    table.draw("Failed kernels by message, most frequent first", COLUMNS, rows, key="error_groups", is_compact=True)
    total = queries.count_error_groups(index.current(), run.run_id) if len(found) == SHOWN else len(found)
    if total > len(found):
        st.caption(f"showing the {len(found)} largest of {total:,} groups")


def cells(run: RunRow, group: ErrorGroupRow) -> dict[str, table.Cell]:
    """One group as cells."""
    depths = f"depth {group.first_depth}"
    depths += f" to {group.last_depth}" if group.last_depth > group.first_depth else ""
    badges = [
        table.badge(f"kernel {number}", "gray", "", name, f"run?run={run.run_id}&candidate={name}")
        for name, number in zip(group.candidate_ids, group.numbers, strict=True)
    ]
    more = group.count - len(badges)
    return {
        "count": f"{group.count:,}",
        "what": table.text(wording.cut(group.message, 200), note=f"{wording.VERDICT_NAME[group.verdict]}, {depths}"),
        "which": table.text("", badges=badges, note=f"and {more:,} more (filter the table above)" if more > 0 else ""),
    }
