"""What was measured of a kernel at each workload of its task. What turns a row into words is pure."""

from __future__ import annotations

import streamlit as st

from pages.parts import index, wording
from pages.parts.widgets import table
from storage.index import queries
from storage.index.queries import WorkloadRow
from storage.results import relative

COLUMNS = [
    table.Column("sizes", "Workload"),
    table.Column("latency", "Time", "right"),
    table.Column("baseline", "PyTorch", "right", "eager"),
    table.Column("speedup", "Speed-up", "right"),
    table.Column("interval", "95 % interval", "right"),
]


def draw(run_id: str, candidate_id: str) -> None:
    """A table to unfold; nothing where the task has one workload alone."""
    rows = queries.workloads(index.current(), run_id, candidate_id)
    if not rows:
        return
    shown = [table.Row(f"{workload.number}", words(workload)) for workload in rows]
    with st.expander(f"Speed-up and times are geometric means over {len(rows)} workloads", icon=":material/list:"):
        table.draw("Workloads of the task", COLUMNS, shown, key="workloads", is_folding=True)


def words(workload: WorkloadRow) -> dict[str, table.Cell]:
    """A workload as a row."""
    return {
        "sizes": ", ".join(f"{name} {value}" for name, value in workload.sizes.items()),
        "latency": wording.latency(workload.latency_ms),
        "baseline": wording.latency(relative.baseline_ms(workload.speedup, workload.latency_ms)),
        "speedup": wording.speedup(workload.speedup),
        "interval": f"{wording.speedup(workload.low)} to {wording.speedup(workload.high)}",
    }
