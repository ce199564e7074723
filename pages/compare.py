"""Several runs side by side: one chart over depth, time, tokens or money, one table, and two kernels head to head."""

from __future__ import annotations

import streamlit as st

from pages.parts import change_token, index
from pages.parts.compare import (
    compare_chart,
    compare_choice,
    compare_kernels,
    compare_report,
    compare_rows,
    compare_table,
    compare_warnings,
)
from pages.parts.status import now
from storage import queries


@st.fragment
def live(run_ids: list[str]) -> None:
    """Everything below the choice; drawn again when one of these runs has news."""
    token = change_token.of(run_ids, is_overview=False, has_measurements=True)
    now.watch(run_ids, is_overview=False, token=token, has_measurements=True)
    runs = compare_rows.gather(index.current(), run_ids)
    if not runs:
        return
    for sentence in compare_warnings.warnings(runs):
        st.warning(sentence, icon=":material/warning:")
    clicked = compare_chart.draw(runs)
    opened = compare_table.draw(runs)
    compare_report.offer(runs)
    compare_chart.draw_exposure(runs)
    compare_chart.draw_tasks(runs)
    compare_kernels.draw(runs)
    if clicked:
        run_id, _, candidate_id = clicked.partition("#")
        st.switch_page("candidate.py", query_params={"run": run_id, "candidate": candidate_id})
    if opened:
        st.switch_page("run.py", query_params={"run": opened})


st.title("Compare", anchor=False)
live(compare_choice.draw(queries.comparable_runs(index.current())))
