"""What the model had tried with tools in the turn that brought a kernel. What turns rows into words is pure."""

from __future__ import annotations

import streamlit as st

from pages.parts import index, texts, wording
from pages.parts.widgets import table
from storage.index import queries
from storage.index.queries import ToolCallRow

COLUMNS = [
    table.Column("at", "Time", "nowrap"),
    table.Column("tool", "Tool"),
    table.Column("outcome", "Result"),
    table.Column("summary", "In one line", "wide"),
    table.Column("seconds", "Took", "right"),
]


def draw(run_id: str, candidate_id: str) -> None:
    """A table; nothing where the model called no tool."""
    calls = queries.tool_calls(index.current(), run_id, candidate_id)
    if not calls:
        return
    st.markdown("## Tools that the model called before it sent this kernel")
    rows = [table.Row(f"{call.call}.{call.number}", cells(call)) for call in calls]
    opened = table.draw("Tool calls", COLUMNS, rows, key="tool_calls", is_folding=True)
    st.caption(
        "Each on a kernel of the model's own, within this turn; every reply that calls tools is a call below, an agent "
        "calls them while its reply is made. A row opens what the model was told, and the kernel that it asked about."
    )
    chosen = next((row for row in calls if f"{row.call}.{row.number}" == opened), None)
    if chosen:
        st.code(texts.read(run_id, chosen.text_blob).text, language=None, wrap_lines=True)
        with st.expander("The kernel that it asked about"):
            st.code(texts.source(run_id, chosen.source_blob), language="python", line_numbers=True)


def cells(call: ToolCallRow) -> dict[str, table.Cell]:
    """A call as a row."""
    tones: dict[str, tuple[wording.Tone, str]] = {"passed": ("green", "held"), "done": ("gray", "absent")}
    tone, icon = tones.get(call.outcome, ("red", "broken"))
    word = "not carried out" if call.outcome == "done" else call.outcome.replace("_", " ")
    return {
        "at": table.text(wording.clock(call.at), "muted"),
        "tool": table.link(call.tool),
        "outcome": table.pill(word, tone, icon),
        "summary": call.summary,
        "seconds": wording.seconds(call.seconds),
    }
