"""The doctor's report, one for all sessions until somebody asks for a new one, and a section of it as a table."""

from __future__ import annotations

import time
from collections.abc import Sequence

import streamlit as st

from engine import supervisor
from engine.supervisor import Finding
from pages.parts import wording
from pages.parts.widgets import table

COLUMNS = [
    table.Column("name", "Component", "nowrap"),
    table.Column("standing", "State", "nowrap"),
    table.Column("detail", "Found"),
    table.Column("remedy", "What to do", "wide"),
]

_asked_at = 0.0


def ask_again() -> None:
    """Have the next `latest`, of any session, look at this machine anew."""
    global _asked_at
    _asked_at = time.time()


def latest() -> tuple[list[Finding], float]:
    """The report and when it was made, in seconds since the epoch; looks at this machine where there is none yet.

    Raises:
        EngineError: the doctor itself did not come to an end. A failure is not kept.
    """
    return _since(_asked_at)


@st.cache_data(show_spinner=False, max_entries=2)
def _since(asked_at: float) -> tuple[list[Finding], float]:
    """Trap: `clear` does not do for asking again. What another session began to compute before it is stored after it,
    and what that session saw of the machine would be everybody's report."""
    return supervisor.examine(), time.time()


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
