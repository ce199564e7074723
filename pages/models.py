"""How to connect a model; and those that have replied so far: how often they are right and what they cost, how much of
what they wrote could be applied, and whether their changes gained what they predicted."""

from __future__ import annotations

import streamlit as st

from pages.parts import change_token, index, wording
from pages.parts.models import by_model, calibration, connect
from pages.parts.status import now
from pages.parts.widgets import table
from storage import queries
from storage.queries import PatchRateRow

COLUMNS = [
    table.Column("model", "Model", "nowrap"),
    table.Column("calls", "Calls", "right", "all replies, including diagnoses and first kernels"),
    table.Column(
        "parsed", "Parsed", "right", "replies with usable edits or a file, of the replies that were asked for one"
    ),
    table.Column("first", "Applied first try", "right", "steps whose first reply applied"),
    table.Column(
        "after_report",
        "Applied after retry",
        "right",
        "steps whose second reply applied, after a report of what did not fit",
    ),
    table.Column("search_replace", "SEARCH/REPLACE", "right", "steps that needed SEARCH/REPLACE blocks"),
    table.Column("rewrite", "Whole file", "right", "steps that needed the whole file"),
    table.Column("failed", "Failed", "right", "steps in which no reply applied"),
]


@st.fragment
def live() -> None:
    """The tables; drawn again when a run has news."""
    now.watch([], is_overview=True, token=change_token.of([], is_overview=True))
    found = queries.patch_rates(index.current())
    if not found:
        st.info("No model replies yet.", icon=":material/forum:")
        return
    by_model.draw()
    st.markdown("## Patches")
    rows = [table.Row(row.model, cells(row)) for row in found]
    table.draw("Patches by model", COLUMNS, rows, key="models", is_cards=True)
    st.caption(
        "A patch is a reply that changes lines of a kernel; it applies whole or not at all. All runs but "
        "replays and examples. *Parsed* counts replies; the shares after it count each step that asks for edits once, "
        "under the reply that applied, and one step may take several replies. Replies are shown with their kernel "
        "under “Prompts and replies”."
    )
    calibration.draw()


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
connect.draw()
live()
