"""The alerts of a run behind a badge; a person can dismiss each for as long as nothing newer of its kind comes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import streamlit as st

from pages.parts import index, wording
from pages.parts.status import alerts, damaged
from pages.parts.status.alerts import Alert
from pages.parts.widgets import table
from storage import queries
from storage.queries import RunRow
from storage.records import RunState


def of_runs(states: Mapping[str, RunState]) -> dict[str, list[Alert]]:
    """Alerts by run; only runs that are not over are asked about."""
    open_runs = [run_id for run_id, state in states.items() if not state.is_finished]
    facts = queries.troubles(index.current(), open_runs)
    return {
        run_id: alerts.find(row, states[run_id], time.time())
        for run_id, row in facts.items()
        if not (states[run_id] is RunState.LOST and damaged.of(run_id).is_damaged)  # its banner says more
    }


def badge(found: Sequence[Alert]) -> list[table.Cell]:
    """The badge for a row of the overview; nothing where all is well."""
    return [table.pill(_count(found), "orange", "lost", title="\n".join(a.text for a in found))] if found else []


def draw(run: RunRow, state: RunState) -> None:
    """A button with the number of alerts that opens the list; a quiet word where there are none."""
    dismissed: set[str] = st.session_state.setdefault(f"dismissed:{run.run_id}", set())
    found = [a for a in of_runs({run.run_id: state}).get(run.run_id, []) if a.alert_id not in dismissed]
    if not found:
        return
    with st.popover(_count(found), icon=":material/warning:", key="alerts", help="Needs attention"):
        for alert in found:
            st.markdown(f"**{str(alert.kind).capitalize()}.** {wording.plain(alert.text)}")
            st.caption(f":material/build: {wording.plain(alert.advice)}")
            st.button("Dismiss", key=f"dismiss:{alert.kind}", on_click=dismissed.add, args=(alert.alert_id,))


def _count(found: Sequence[Alert]) -> str:
    return f"{len(found)} {'alert' if len(found) == 1 else 'alerts'}"
