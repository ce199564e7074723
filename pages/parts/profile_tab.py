"""A kernel's profile: its place under the machine's roofs, its launches, and exactly what a model may see of it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

import streamlit as st

from pages.parts import (
    advice_table,
    index,
    launches_table,
    metrics_table,
    plot,
    roofline,
    speed_of_light,
    stall_figure,
    table,
    wording,
)
from pages.parts import texts as kept
from storage import counters, queries
from storage.queries import CandidateRow, MetricChangeRow, MetricRow, ProfileRow

ROOFLINE_PX = 340
FACTS = [table.Column("name", "How it was taken", "nowrap"), table.Column("value", "")]


def draw(run_id: str, candidate: CandidateRow) -> None:
    """Pictures left, the model's view right, tables below."""
    db = index.current()
    profile = queries.profile(db, run_id, candidate.candidate_id)
    if profile is None:
        st.caption("Not profiled. Set “Collect profiles” to on to profile every correct kernel from now on.")
        return
    if profile.failure:
        st.warning(f"No profile could be had: {wording.plain(profile.failure)}", icon=":material/warning:")
        return
    changes = queries.metric_changes(db, run_id, candidate.candidate_id)
    rows = queries.metrics(db, run_id, candidate.candidate_id)
    _headline(run_id, profile, changes)
    left, right = st.columns([1.25, 1], gap="medium")
    with left:
        _roofline(run_id, candidate, profile, rows, changes)
        _stalls(run_id, candidate, rows)
    with right:
        _for_the_model(profile)
    _launches(rows)
    _advice(queries.advice(db, run_id, candidate.candidate_id))
    metrics_table.draw(changes)
    _how(run_id, candidate, profile)


def _headline(run_id: str, profile: ProfileRow, changes: Sequence[MetricChangeRow]) -> None:
    previous = next((c.previous_id for c in changes if c.previous_id), None)
    against = ""
    if previous:
        against = f" · changes are against kernel {_number(run_id, previous)}, its nearest profiled ancestor"
    st.markdown(
        f"**Bound by** :violet-badge[{wording.plain(profile.bound) or 'unknown'}] "
        f":gray[{wording.moment(profile.at)}{against}]"
    )
    if because := profile.evidence.get("because"):
        remedy = profile.evidence.get("what to do", "")
        told = f"Taken without hardware counters: {because}{f'; {remedy}' if remedy else ''}."
        st.info(wording.plain(told), icon=":material/visibility_off:")
    if profile.missing:
        names = dict.fromkeys(counters.label(name) for name in profile.missing)
        st.caption(f"not available here: {wording.plain(', '.join(names))}")


def _number(run_id: str, candidate_id: str) -> int | None:
    return {a.candidate_id: a.number for a in queries.attempts(index.current(), run_id)}.get(candidate_id)


def _roofline(
    run_id: str,
    candidate: CandidateRow,
    profile: ProfileRow,
    rows: Sequence[MetricRow],
    changes: Sequence[MetricChangeRow],
) -> None:
    db = index.current()
    limit = queries.limit(db, run_id)
    rates = roofline.ceilings(profile.ceilings, limit)
    here = roofline.point(f"kernel {candidate.number}", _whole(rows))
    if limit is not None and limit.limit_ms > 0:
        told = speed_of_light.sentence(limit, candidate.latency_ms, profile.ceilings.get(roofline.MEMORY))
        st.caption(wording.plain(told))
    if len(rates) < 2 or here is None:
        st.caption("No roofline: the operations or the memory traffic of this kernel were not counted.")
        return
    previous = queries.profiled_ancestor(db, run_id, candidate.candidate_id)
    before = None
    if previous:
        name = f"kernel {_number(run_id, previous)} before"
        before = roofline.point(name, _whole(queries.metrics(db, run_id, previous)))
    points = [here, *([before] if before else [])]
    target = roofline.task_limit(rates, limit)
    st.markdown("###### Roofline")
    zoom = f"{run_id}:{candidate.candidate_id}:roofline"
    name = (
        f"Roofline: {here.name} at {wording.quantity(here.rate, 'FLOP/s')} and {here.intensity:.3g} operations per byte"
    )
    plot.draw(roofline.figure(rates, points, target), name, ROOFLINE_PX, zoom, key=f"roofline:{candidate.candidate_id}")


def _whole(rows: Sequence[MetricRow]) -> dict[str, float]:
    return {row.metric: row.value for row in rows if row.launch < 0 and not row.kernel}


def _stalls(run_id: str, candidate: CandidateRow, rows: Sequence[MetricRow]) -> None:
    found = stall_figure.shares(rows, -1)
    if not found:
        return
    st.markdown("###### What warps wait for")
    first = next(iter(found))
    name = f"Shares of waiting time: {wording.significant(100 * found[first], 2)} % {first.replace('_', ' ')} first"
    zoom = f"{run_id}:{candidate.candidate_id}:stalls"
    key = f"stalls:{candidate.candidate_id}"
    plot.draw(stall_figure.figure(found), name, stall_figure.height(found), zoom, key=key)


def _launches(rows: Sequence[MetricRow]) -> None:
    found = launches_table.rows(rows)
    if found:
        st.markdown("###### Launches")
        table.draw("Launches of the profiled call", launches_table.COLUMNS, found, key="launches", is_compact=True)


def _advice(found: Sequence[queries.AdviceRow]) -> None:
    worth = [one for one in found if one.gain_percent]
    if worth:
        st.markdown("###### The profiler's own advice")
        rows = advice_table.rows(worth)
        table.draw("The profiler's advice", advice_table.COLUMNS, rows, key="advice", is_compact=True, is_folding=True)


def _for_the_model(profile: ProfileRow) -> None:
    st.markdown("**What a model is shown of it**")
    st.code(profile.summary or "(empty)", language=None, wrap_lines=True)


def _how(run_id: str, candidate: CandidateRow, profile: ProfileRow) -> None:
    """How it was taken, and everything the profiler left."""
    if profile.evidence:
        rows = [table.Row(name, {"name": name, "value": value}) for name, value in profile.evidence.items()]
        table.draw("How the profile was taken", FACTS, rows, key="evidence", is_compact=True)
    if not profile.raw_blob:
        return
    raw = st.expander("Raw report", key=f"raw:{candidate.candidate_id}", on_change="rerun")
    if raw.open:
        with raw:
            _downloads(run_id, candidate.candidate_id, profile.raw_blob, profile.report_blob)


def _downloads(run_id: str, name: str, raw_blob: str, report_blob: str | None) -> None:
    text = kept.source(run_id, raw_blob)
    icon = ":material/download:"
    with st.container(horizontal=True):
        st.download_button("Download", text, f"{name}-profile.txt", icon=icon, on_click="ignore", key="raw_text")
        if report_blob:
            report = _decoded(kept.source(run_id, report_blob))
            if report:
                file = f"{name}.ncu-rep"
                st.download_button("Nsight Compute file", report, file, icon=icon, on_click="ignore", key="report")
    st.code(text[:200_000], language=None, height=420)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):  # a blob that is gone reads as a sentence
        return b""
