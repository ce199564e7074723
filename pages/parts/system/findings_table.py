"""One section of the doctor's report as a table. Knows no machine."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from engine.supervisor import Finding
from pages.parts import wording
from pages.parts.widgets import table

COLUMNS = [
    table.Column("name", "Component", "nowrap"),
    table.Column("standing", "State", "nowrap"),
    table.Column("detail", "Found"),
    table.Column("remedy", "What to do", "wide"),
]


def draw(section: str, findings: Sequence[Finding]) -> None:
    """A heading and its rows."""
    st.markdown(f"## {wording.plain(section)}")
    rows = [table.Row(f"{i}", cells(finding)) for i, finding in enumerate(findings)]
    table.draw(f"System: {section}", COLUMNS, rows, key=f"system:{section}", is_compact=True, is_folding=True)


def cells(finding: Finding) -> dict[str, table.Cell]:
    """One line of the report as cells; what is missing and needed is told apart from what is only missing."""
    state = ("OK", "green", "held") if finding.is_ok else ("missing", "red", "broken") if finding.is_required else (
        "not found", "gray", "absent"
    )  # fmt: skip
    return {
        "name": table.text(finding.name, "strong"),
        "standing": table.pill(*state),
        "detail": table.text(finding.detail),
        "remedy": table.text(finding.remedy, "muted"),
    }
