"""The models that have replied so far: how much of what they wrote could be read and applied."""

from __future__ import annotations

import streamlit as st

from pages.parts import index, now, pulse, table, wording
from storage import queries
from storage.queries import PatchRateRow

COLUMNS = [
    table.Column("model", "Model", "nowrap"),
    table.Column("calls", "Calls", "right", "all replies, diagnoses and first kernels included"),
    table.Column(
        "parsed", "Patches read", "right", "replies that held edits or a file, of those that were to hold one"
    ),
    table.Column("first", "Applied at once", "right", "steps whose first reply applied"),
    table.Column("after_report", "After a report", "right", "after one re-ask with a report of what did not fit"),
    table.Column("search_replace", "SEARCH/REPLACE", "right", "after falling back to SEARCH/REPLACE blocks"),
    table.Column("rewrite", "Whole file", "right", "after falling back to a whole file"),
    table.Column("failed", "Failed", "right", "steps in which no reply applied"),
]


@st.fragment
def live() -> None:
    """The table; drawn again when a run has news."""
    now.watch([], is_overview=True, version=pulse.version([], is_overview=True))
    found = queries.patch_rates(index.current())
    if not found:
        st.info("No model has replied yet.", icon=":material/forum:")
        return
    rows = [table.Row(row.model, cells(row)) for row in found]
    table.draw("Patches by model", COLUMNS, rows, key="models", is_cards=True)
    st.caption(
        "Over all runs. Each step that wants a patch counts once, under the reply that applied. Every reply is kept "
        "with its kernel, under “Prompts and replies”."
    )


def cells(row: PatchRateRow) -> dict[str, table.Cell]:
    """One model as cells."""
    counts = {name: getattr(row, name) for name in ("first", "after_report", "search_replace", "rewrite")}
    failed = table.text(wording.share(row.failed, row.steps), "red" if row.failed else "")
    return (
        {"model": table.text(row.model, "strong"), "calls": wording.count(row.calls)}
        | {"parsed": wording.share(row.parsed, row.replies)}
        | {name: wording.share(count, row.steps) for name, count in counts.items()}
        | {"failed": failed}
    )


st.title("Models", anchor=False)
live()
