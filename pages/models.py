"""Models that are saved, and how to connect one; and those that have replied so far: how often they are right and what
they cost, how much of what they wrote could be applied, and whether their changes gained what they predicted."""

from __future__ import annotations

import streamlit as st

from pages.parts import change_token, index, wording
from pages.parts.models import by_model, calibration, connect, saved_list
from pages.parts.status import now
from pages.parts.widgets import table
from storage.index import queries
from storage.index.queries import PatchRateRow

COLUMNS = [
    table.Column("model", "Model", "nowrap", by_model.NAMED),
    table.Column("calls", "Calls", "right", "all replies, including diagnoses and first kernels"),
    table.Column("parsed", "Readable", "right", "replies with a change that could be read, of those asked for one"),
    table.Column("first", "Applied at first try", "right", "steps whose first reply applied, whatever its form"),
    table.Column("later", "Applied later", "right", "steps in which a later reply applied, after a report"),
    table.Column("failed", "Never applied", "right", "steps in which no reply applied"),
    table.Column("edits", "As line edits", "right", "of the steps that applied, those by edits of single lines"),
    table.Column(
        "search_replace",
        "As SEARCH/REPLACE",
        "right",
        "of the steps that applied, those by blocks that quote old lines and give new ones",
    ),
    table.Column("rewrite", "As whole file", "right", "of the steps that applied, those by a file written anew"),
]


@st.fragment
def live() -> None:
    """The tables; drawn again when a run has news."""
    now.watch([], is_overview=True, token=change_token.of([], is_overview=True))
    rates = queries.patch_rates(index.current())
    if not rates:
        st.info("No model replies yet. Examples and replays do not count here.", icon=":material/forum:")
        return
    by_model.draw()
    st.markdown("## Patches")
    rows = [table.Row(row.model, cells(row)) for row in rates]
    table.draw("Patches by model", COLUMNS, rows, key="models", is_cards=True)
    st.caption(
        "To change a kernel a step asks for a patch. One that does not apply whole is asked for again, with a report "
        "of why. *Readable* counts replies, the columns after it count steps; the last three tell the form of those "
        "that applied. Replays and examples are left out. Replies stand with their kernel under “Prompts and replies”."
    )
    calibration.draw()


def cells(row: PatchRateRow) -> dict[str, table.Cell]:
    """One model as cells."""
    applied = row.first + row.later
    return {
        "model": table.text(row.model, "strong"),
        "calls": wording.count(row.calls),
        "parsed": by_model.part(row.parsed, row.replies),
        "first": by_model.part(row.first, row.steps),
        "later": by_model.part(row.later, row.steps),
        "failed": by_model.part(row.failed, row.steps, "red" if row.failed else ""),
        "edits": by_model.part(row.edits, applied),
        "search_replace": by_model.part(row.search_replace, applied),
        "rewrite": by_model.part(row.rewrite, applied),
    }


st.title("Models", anchor=False)
saved_list.draw()
connect.draw()
live()
