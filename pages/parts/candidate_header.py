"""Who a kernel is: number, place in the run, verdict, speed, and the ways to its neighbours."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts import index, wording
from storage import queries
from storage.queries import BaselineRow, CandidateRow, ImportRow, RunRow
from storage.records import Verdict
from storage.relative import Relative

ICON = {Verdict.PASSED: ":material/check:", Verdict.REFUSED: ":material/block:"}


def draw(run: RunRow, candidate: CandidateRow) -> None:
    """Header with the measured numbers under it."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.page_link(
            "run.py",
            label=run.title.capitalize(),
            icon=":material/arrow_back:",
            query_params={"run": run.run_id},
            width="content",
        )
        st.subheader(f"Kernel {candidate.number}", anchor=False, width="content")
        badges(candidate)
        _flags(run, candidate)
        st.caption(
            f"`{candidate.candidate_id}` · depth {candidate.depth} · {wording.ORIGIN_NAME[candidate.origin]}",
            width="content",
        )
        st.space("stretch")
        _neighbours(run, candidate)
    if candidate.summary:
        st.markdown(f"**{wording.plain(candidate.summary)}**")
    _imported(run, candidate)
    _family(run, candidate)
    _numbers(run, candidate)


def _imported(run: RunRow, candidate: CandidateRow) -> None:
    """What another system says about it, marked as such."""
    told = queries.imported(index.current(), run.run_id, candidate.candidate_id)
    if told is None:
        return
    parts = [f"status {told.status}" if told.status else "", _elsewhere(told)]
    st.caption(
        f":material/move_to_inbox: Imported from {wording.plain(told.file)}; recorded there, not measured here: "
        + (wording.plain(", ".join(part for part in parts if part)) or "nothing")
    )


def _elsewhere(told: ImportRow) -> str:
    if told.latency_ms is None:
        return ""
    against = f" against {wording.latency(told.baseline_latency_ms)}" if told.baseline_latency_ms else ""
    return f"{wording.latency(told.latency_ms)}{against}"


def badges(candidate: CandidateRow) -> None:
    """Verdict and standing, each with its icon."""
    if candidate.verdict is None:
        st.badge("not judged yet", color="gray", icon=":material/hourglass_top:")
    else:
        icon = ICON.get(candidate.verdict, ":material/close:")
        st.badge(wording.VERDICT_NAME[candidate.verdict], color=wording.VERDICT_TONE[candidate.verdict], icon=icon)
    if candidate.is_best:
        st.badge("best", color="green", icon=":material/star:")
    elif candidate.is_accepted:
        st.badge("kept", color="blue")
    if candidate.is_profile_exposed:
        st.badge("model saw a profile", color="violet", icon=":material/visibility:")


def _flags(run: RunRow, candidate: CandidateRow) -> None:
    """What a person should look at, and the way there."""
    count = queries.standing_counts(index.current(), run.run_id).get(candidate.candidate_id)
    if count and count.flagged:
        st.button(
            f":orange-badge[:material/flag: {count.flagged} flagged]", key="flagged", type="tertiary",
            help="a person should look at this: opens Trust", on_click=_open_trust, width="content",
        )  # fmt: skip


def _open_trust() -> None:
    st.query_params["tab"] = "Trust"


def _neighbours(run: RunRow, candidate: CandidateRow) -> None:
    names = [a.candidate_id for a in queries.attempts(index.current(), run.run_id)]
    at = names.index(candidate.candidate_id)
    for label, icon, side, other in (
        ("Previous", ":material/chevron_left:", "left", at - 1),
        ("Next", ":material/chevron_right:", "right", at + 1),
    ):
        is_there = 0 <= other < len(names)
        target = {"run": run.run_id, "candidate": names[other] if is_there else candidate.candidate_id}
        st.page_link(
            "candidate.py", label=label, icon=icon, icon_position="left" if side == "left" else "right",
            disabled=not is_there, query_params=target, width="content",
        )  # fmt: skip


def _family(run: RunRow, candidate: CandidateRow) -> None:
    if not candidate.parent_id and not candidate.children:
        return
    numbers = {a.candidate_id: a.number for a in queries.attempts(index.current(), run.run_id)}
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        family = [("made from", candidate.parent_id), *(("led to", child) for child in candidate.children[:6])]
        for relation, other in family:
            if other in numbers:
                target = {"run": run.run_id, "candidate": other}
                st.page_link(
                    "candidate.py", label=f"{relation} kernel {numbers[other]}", query_params=target, width="content"
                )


def _numbers(run: RunRow, candidate: CandidateRow) -> None:
    if candidate.speedup is None:
        if candidate.message:
            st.error(wording.plain(candidate.message), icon=":material/error:")
        return
    evaluation = queries.evaluation(index.current(), run.run_id, candidate.candidate_id)
    baseline = queries.baseline(index.current(), run.run_id)
    found = baseline.under(candidate.speedup, candidate.noise) if baseline else None
    columns = iter(st.columns(6 if found else 5))
    noise = f"{wording.plus_minus(candidate.noise)}, 95 %: {wording.interval(candidate.low, candidate.high)}"
    next(columns).metric("Speed-up", wording.speedup(candidate.speedup, candidate.noise), help=noise)
    if found and baseline:
        _over(next(columns), found, baseline)
    next(columns).metric(
        "Noise", wording.plus_minus(candidate.noise), help="half the 95 % interval of the median ratio"
    )
    next(columns).metric("Latency", wording.latency(candidate.latency_ms), help="median of the timed calls")
    next(columns).metric(
        "Baseline", wording.latency(candidate.baseline_latency_ms), help=evaluation.baseline if evaluation else ""
    )
    next(columns).metric("Precision", evaluation.precision if evaluation and evaluation.precision else wording.NONE)


def _over(column: DeltaGenerator, found: Relative, baseline: BaselineRow) -> None:
    """The same speed-up over the further baseline."""
    name = wording.plain(baseline.name)
    interval = f"{wording.plus_minus(found.noise)}, 95 %: {wording.interval(found.low, found.high)}"
    itself = f"{name} is {wording.speedup(baseline.speedup, baseline.noise)} over eager"
    column.metric(f"Over {name}", wording.speedup(found.speedup, found.noise), help=f"{interval}; {itself}")
