"""A kernel's profile: values against its nearest profiled ancestor, and exactly what the model may see of it."""

from __future__ import annotations

from itertools import groupby

import streamlit as st

from pages.parts import index, table, texts, wording
from storage import queries
from storage.queries import CandidateRow, MetricChangeRow, ProfileRow

COLUMNS = [
    table.Column("metric", "Metric"),
    table.Column("value", "Value", "right"),
    table.Column("previous", "Before", "right"),
    table.Column("change", "Change", "right"),
]
FUNCTION_COLUMNS = [
    table.Column("function", "Function"),
    table.Column("metric", "Metric"),
    table.Column("value", "Value", "right"),
]


def draw(run_id: str, candidate: CandidateRow) -> None:
    """Metrics left, the model's view right."""
    db = index.current()
    profile = queries.profile(db, run_id, candidate.candidate_id)
    if profile is None:
        st.caption("Not profiled. Set “Collect profiles” to on to profile every correct kernel from now on.")
        return
    if profile.failure:
        st.warning(f"No profile could be had: {wording.plain(profile.failure)}", icon=":material/warning:")
        return
    changes = queries.metric_changes(db, run_id, candidate.candidate_id)
    left, right = st.columns([1.25, 1], gap="medium")
    with left:
        _headline(run_id, profile, changes)
        _metrics(changes)
    with right:
        _for_the_model(run_id, candidate, profile)


def _headline(run_id: str, profile: ProfileRow, changes: list[MetricChangeRow]) -> None:
    previous = next((c.previous_id for c in changes if c.previous_id), None)
    against = ""
    if previous:
        number = {a.candidate_id: a.number for a in queries.attempts(index.current(), run_id)}.get(previous)
        against = f" · changes are against kernel {number}, its nearest profiled ancestor"
    st.markdown(
        f"**Bound by** :violet-badge[{wording.plain(profile.bound) or 'unknown'}] "
        f":gray[{wording.moment(profile.at)}{against}]"
    )
    if profile.missing:
        st.caption(f"not available here: {wording.plain(', '.join(profile.missing))}")


def _metrics(changes: list[MetricChangeRow]) -> None:
    """One table per launch; functions of the whole call (launch -1 with a name) in one of their own, largest first."""
    functions = sorted((c for c in changes if c.launch < 0 and c.kernel), key=lambda c: -c.value)
    rest = [c for c in changes if c.launch >= 0 or not c.kernel]
    # Trap: a component's key must not contain two underscores in a row, which kernel names do; so tables are numbered.
    for number, ((launch, kernel), group) in enumerate(groupby(rest, key=lambda c: (c.launch, c.kernel))):
        title = "Whole call" if launch < 0 else f"Launch {launch}: {kernel}"
        rows = [table.Row(c.metric, cells(c)) for c in group]
        st.markdown(f"###### {wording.plain(title)}")
        table.draw(f"Profile metrics, {title}", COLUMNS, rows, key=f"metrics:{number}", is_compact=True)
    if functions:
        st.markdown("###### Where the time goes")
        rows = [table.Row(f"{i}", function_cells(c)) for i, c in enumerate(functions)]
        table.draw("Profile metrics by function", FUNCTION_COLUMNS, rows, key="metrics:functions", is_compact=True)


def function_cells(change: MetricChangeRow) -> dict[str, table.Cell]:
    """One function of the call as cells."""
    value = wording.quantity(change.value, change.unit, change.metric.endswith("share"))
    return {"function": change.kernel, "metric": change.metric.replace("_", " "), "value": value}


def cells(change: MetricChangeRow) -> dict[str, table.Cell]:
    """One metric as cells."""
    is_share = change.metric.endswith("share")
    return {
        "metric": change.metric.replace("_", " "),
        "value": wording.quantity(change.value, change.unit, is_share),
        "previous": wording.NONE
        if change.previous is None
        else wording.quantity(change.previous, change.unit, is_share),
        "change": _change(change),
    }


def _change(change: MetricChangeRow) -> table.Cell:
    if change.ratio is None:
        return wording.NONE
    percent = 100 * (change.ratio - 1)
    if abs(percent) < 0.5:
        return table.text("=", "muted")
    return table.text(f"{'▲' if percent > 0 else '▼'} {wording.significant(abs(percent), 2)} %", "strong")


def _for_the_model(run_id: str, candidate: CandidateRow, profile: ProfileRow) -> None:
    st.markdown("**What a model is shown of it**")
    st.code(profile.summary or "(empty)", language=None, wrap_lines=True)
    if profile.raw_blob:
        raw = st.expander("Raw report", key=f"raw:{candidate.candidate_id}", on_change="rerun")
        if raw.open:
            text = texts.source(run_id, profile.raw_blob)
            raw.download_button(
                "Download",
                text,
                file_name=f"{candidate.candidate_id}-profile.txt",
                icon=":material/download:",
                on_click="ignore",
            )
            raw.code(text[:200_000], language=None, height=420)
