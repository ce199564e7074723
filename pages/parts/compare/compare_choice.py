"""Which runs are compared: chosen by name, kept in the address as `?runs=a,b,c`."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.parts import wording
from pages.parts.compare.compare_rows import AT_MOST
from storage.queries import RunChoice

KEY = "compared_runs"


def draw(choices: Sequence[RunChoice]) -> list[str]:
    """The choice; says so when there is nothing to choose, and which runs of the address are not here."""
    known = {choice.run_id: choice for choice in choices}
    wanted = [name for name in st.query_params.get("runs", "").split(",") if name]
    if KEY not in st.session_state:
        st.session_state[KEY] = [name for name in dict.fromkeys(wanted) if name in known][:AT_MOST]
    if not known:
        st.info("No runs yet, so nothing to compare.", icon=":material/monitoring:")
        return []
    chosen = st.multiselect(
        "Runs to compare", list(known), key=KEY, format_func=lambda name: label(known[name]) if name in known else name,
        max_selections=AT_MOST, select_all=False, placeholder="Search by task, model or run name",
    )  # fmt: skip
    for name in [name for name in wanted if name not in known][:3]:
        st.warning(f"Run {wording.plain(wording.cut(name, 80))} not found.", icon=":material/search_off:")
    if chosen != wanted:
        _keep(chosen)
    if not chosen:
        st.info(f"Choose 2 to {AT_MOST} runs.", icon=":material/stacked_line_chart:")
    elif len(chosen) == 1:
        st.caption("Choose another run to compare with.")
    return list(chosen)


def label(choice: RunChoice) -> str:
    """One line by which a run can be searched."""
    title = choice.task_name.replace("_", " ")
    return (
        f"{title} · {choice.model} · {choice.toolchain} · {wording.moment(choice.created_at)} · {choice.run_id[-16:]}"
    )


def _keep(chosen: Sequence[str]) -> None:
    if chosen:
        st.query_params["runs"] = ",".join(chosen)
    elif "runs" in st.query_params:
        del st.query_params["runs"]
