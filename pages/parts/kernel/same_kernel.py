"""The same source on each model of device that it was timed on. What turns a row into words is pure."""

from __future__ import annotations

import streamlit as st

from pages.parts import index, wording
from pages.parts.widgets import table
from storage.index.queries.device_results import SameKernelRow, same_kernel
from storage.results import relative

COLUMNS = [
    table.Column("device", "Device"),
    table.Column("latency", "Time", "right"),
    table.Column("baseline", "PyTorch", "right", "eager, on the same device"),
    table.Column("speedup", "Speed-up", "right"),
    table.Column("interval", "95 % interval", "right"),
]


def draw(run_id: str, candidate_id: str) -> None:
    """A table to unfold; nothing where the kernel was timed on one model of device alone."""
    rows = same_kernel(index.current(), run_id, candidate_id)
    if not rows:
        return
    shown = [table.Row(f"{row.run_id}/{row.candidate_id}", words(row, run_id), _address(row)) for row in rows]
    with st.expander("The same kernel on other devices", icon=":material/memory:"):
        st.caption("Each speed-up is over eager PyTorch on the same device, so those of two devices do not compare.")
        opened = table.draw("The kernel by device", COLUMNS, shown, key="devices_of_kernel", is_folding=True)
    if opened:
        run, _, candidate = opened.rpartition("/")
        st.switch_page("candidate.py", query_params={"run": run, "candidate": candidate})


def _address(row: SameKernelRow) -> str:
    return f"candidate?run={wording.in_address(row.run_id)}&candidate={wording.in_address(row.candidate_id)}"


def words(row: SameKernelRow, run_id: str) -> dict[str, table.Cell]:
    """A device as a row."""
    several = f" · {wording.counted(row.runs, 'run')}, the last one" if row.runs > 1 else ""
    where = "this run" if row.run_id == run_id else f"{row.run_id}{several}"
    return {
        "device": table.link(row.model, where),
        "latency": wording.latency(row.latency_ms),
        "baseline": wording.latency(relative.baseline_ms(row.speedup, row.latency_ms)),
        "speedup": wording.ratio(row),
        "interval": f"{wording.speedup(row.low)} to {wording.speedup(row.high)}",
    }
