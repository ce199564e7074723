"""The step that made a kernel, explained: what was wrong, what was edited, what the profile says, what it cost."""

from __future__ import annotations

import streamlit as st

from pages.parts import index, texts, wording
from pages.parts.kernel import metric_sense, metrics
from pages.parts.kernel.metric_sense import Judgement
from pages.parts.run import explain
from pages.parts.widgets import table
from storage import queries
from storage.queries import CandidateRow, PatchRow, RunRow
from storage.records import Verdict

MOST = 6  # figures of a profile
LONG = 400  # characters of a diagnosis that need no scrolling of their own


def draw(run: RunRow, kernel: CandidateRow) -> None:
    """Error, diagnosis, edit, profile and cost, each only where there is one."""
    db = index.current()
    _error(run, kernel)
    _diagnosis(run, kernel)
    patches = [p for p in queries.patches(db, run.run_id, kernel.candidate_id) if p.made_id == kernel.candidate_id]
    _facts(kernel, patches, explain.cost(queries.kernel_cost(db, run.run_id, kernel.candidate_id)))
    _metrics(run, kernel)


def _error(run: RunRow, kernel: CandidateRow) -> None:
    if kernel.verdict in (None, Verdict.PASSED):
        return
    st.error(wording.plain(wording.cut(kernel.message, 400)) or "It failed without a message.", icon=":material/error:")
    found = queries.correctness_errors(index.current(), run.run_id, kernel.candidate_id)
    if found and (told := explain.where_wrong(found[0])):
        st.caption(wording.plain(told))


def _diagnosis(run: RunRow, kernel: CandidateRow) -> None:
    """What the model thought was wrong: with its parent, which led here, else with this kernel itself."""
    found = queries.diagnoses(index.current(), run.run_id, kernel.candidate_id)
    if not found:
        return
    before = [d for d in found if d.candidate_id == kernel.parent_id]
    chosen = (before or found)[-1]
    whose = f"of the parent, kernel {kernel.parent_number}" if before else "of this kernel"
    st.markdown(f"### Diagnosis :gray[{whose}]")
    text = wording.unmarked(texts.source(run.run_id, chosen.text_blob))
    with st.container(height=150 if len(text) > LONG else "content"):
        st.text(text)


def _facts(kernel: CandidateRow, patches: list[PatchRow], cost: str) -> None:
    made = f"from kernel {kernel.parent_number}" if kernel.parent_number else "from scratch"
    lines = f", +{kernel.lines_added} −{kernel.lines_removed} lines" if kernel.parent_number else ""
    edits = next((p.edit_count for p in reversed(patches) if p.is_applied), 0)
    edited = f", {edits} {'edit' if edits == 1 else 'edits'}" if edits else ""
    refused = sum(not p.is_applied for p in patches)
    again = f", after {refused} {'patch' if refused == 1 else 'patches'} that did not apply" if refused else ""
    saw = " · the model saw a profile" if kernel.is_profile_exposed else ""
    st.markdown(
        f":material/edit_note: {wording.ORIGIN_NAME[kernel.origin].capitalize()} at depth {kernel.depth}, "
        f"{made}{edited}{lines}{again}{saw}"
    )
    st.markdown(f":material/payments: {wording.plain(cost)}")


def _metrics(run: RunRow, kernel: CandidateRow) -> None:
    """What changed in the profile, most first: the nearest there is to a reason."""
    found = queries.metric_changes(index.current(), run.run_id, kernel.candidate_id)
    if not found:
        if kernel.verdict is Verdict.PASSED:
            st.caption("Not profiled. *Collect profiles* under Steer profiles the kernels to come.")
        return
    moved = [one for one in metric_sense.weighed(found) if one.judgement is not Judgement.SAME]
    if not moved:
        st.caption("Profiled; no notable change since a profiled ancestor.")
        return
    before = next(c.previous_id for c in found if c.previous_id)
    place = queries.neighbours(index.current(), run.run_id, before)
    st.markdown(f"### Profile :gray[against kernel {place.number}, largest effect first]" if place else "### Profile")
    rows = [table.Row(f"{i}", metrics.change_cells(one)) for i, one in enumerate(moved[:MOST])]
    table.draw(
        "Changes in the profile, largest effect first", metrics.CHANGE_COLUMNS, rows, key="panel_metrics",
        is_compact=True, is_folding=True,
    )  # fmt: skip
