"""That a run began with a kernel of another one: said on every page that shows it."""

from __future__ import annotations

import streamlit as st

from pages.parts import index, wording
from pages.parts.widgets import table
from storage import queries
from storage.queries import RunRow


def words(run: RunRow) -> str:
    """ "forked from kernel 6 of RUN"; empty for a run that is no fork."""
    return f"forked from kernel {run.forked_number} of {run.forked_run}" if run.forked_run else ""


def draw(run: RunRow) -> None:
    """The words beside the run's name, as a link while the other run is there."""
    if run.forked_run is None:
        return
    if queries.of_ids(index.current(), [run.forked_run]):
        st.page_link(
            "run.py", label=wording.plain(words(run)), icon=":material/fork_right:",
            query_params={"run": run.forked_run}, width="content",
        )  # fmt: skip
    else:
        st.caption(f":material/fork_right: {wording.plain(words(run))} (run not found)", width="content")


def cells(run: RunRow) -> list[table.Cell]:
    """The same in a row of the overview."""
    if run.forked_run is None:
        return []
    name = f"forked from kernel {run.forked_number} of {run.forked_run[-20:]}"  # as rows name their own run
    return [table.badge(name, "gray", "", run.forked_run, f"run?run={run.forked_run}")]
