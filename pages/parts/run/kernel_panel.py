"""One kernel beside the curve: what changed, how fast it became, and why."""

from __future__ import annotations

import streamlit as st

from pages.parts import client, index, texts, wording
from pages.parts.kernel import kernel_header, story
from pages.parts.run import explain_step, selection
from pages.parts.widgets import diff
from storage import queries
from storage.queries import AttemptRow, CandidateRow, NeighbourRow, RunRow
from storage.records import Verdict

SHORT = 12  # changed lines that need no scrolling of their own

_reveal = st.components.v2.component(
    "tilewright_reveal", html='<span class="reveal"\n hidden></span>', js=client.read("reveal.js")
)


def draw(run: RunRow, candidate_id: str) -> None:
    """The panel of the open kernel, or a word that there is no such kernel."""
    db = index.current()
    with st.container(border=True, key="kernel_panel"):
        place = queries.neighbours(db, run.run_id, candidate_id)
        kernel = queries.candidate(db, run.run_id, candidate_id)
        _head(run, kernel, place)
        _reveal(data={"id": candidate_id}, key="reveal", height=1)
        if kernel is None:
            st.info(f"This run has no kernel **{wording.plain(candidate_id)}** yet.", icon=":material/search_off:")
            return
        parent = queries.candidate(db, run.run_id, kernel.parent_id) if kernel.parent_id else None
        base = queries.candidate(db, run.run_id, kernel.base_id) if kernel.base_id else None
        _outcome(kernel, parent, base)
        explain_step.draw(run, kernel)
        _mended(run, kernel)
        _diff(run, kernel, parent)


def _head(run: RunRow, kernel: CandidateRow | None, place: NeighbourRow | None) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"## Kernel {kernel.number}" if kernel else "## Kernel", width="content")
        st.space("stretch")
        previous_id, next_id = (place.previous_id, place.next_id) if place else (None, None)
        for label, icon, key, shortcut, other in (
            ("Previous kernel", ":material/chevron_left:", "panel_previous", "K", previous_id),
            ("Next kernel", ":material/chevron_right:", "panel_next", "J", next_id),
        ):
            st.button(
                "", icon=icon, key=key, help=label, shortcut=shortcut, type="tertiary", disabled=other is None,
                on_click=selection.choose, args=(run.run_id, other or ""),
            )  # fmt: skip
        st.button(
            "", icon=":material/close:", key="panel_close", help="Close the kernel", shortcut="Escape", type="tertiary",
            on_click=selection.clear,
        )  # fmt: skip
    if kernel:
        with st.container(horizontal=True, gap="small"):
            kernel_header.badges(kernel)
            if flagged := queries.standing_counts(index.current(), run.run_id, [kernel.candidate_id]):
                _flagged(run, kernel, flagged[kernel.candidate_id].flagged)


def _flagged(run: RunRow, kernel: CandidateRow, count: int) -> None:
    if count:
        target = {"run": run.run_id, "candidate": kernel.candidate_id, "tab": "Trust"}
        st.page_link(
            "candidate.py", label=f":orange-badge[:material/flag: {count} flagged]", query_params=target,
            help="needs a look: open Trust", width="content",
        )  # fmt: skip


def _outcome(kernel: CandidateRow, parent: AttemptRow | None, base: AttemptRow | None) -> None:
    """What changed, and the speed-up it gave."""
    st.markdown(f"**{wording.plain(kernel.summary) or wording.ORIGIN_NAME[kernel.origin]}**")
    if kernel.speedup is None:
        return
    other = parent if parent and parent.speedup is not None else base
    change = story.gain(kernel, other) if other else None
    left, right = st.columns([1, 1.35])
    interval = f"95 %: {wording.interval(kernel.low, kernel.high)}"
    left.metric("Over eager PyTorch", wording.speedup(kernel.speedup, kernel.noise), help=interval)
    left.caption(f"{wording.plus_minus(kernel.noise)} · {wording.latency(kernel.latency_ms)}")
    if change and other:
        what = "parent" if other is parent else "base"
        right.metric(f"Over {what} (kernel {other.number})", wording.speedup(change.speedup, change.noise))
        right.caption(f"{story.standing(change).capitalize()} ({wording.plus_minus(change.noise)})")


def _mended(run: RunRow, kernel: CandidateRow) -> None:
    """The way from a failed kernel to the one that mended it."""
    if kernel.verdict in (None, Verdict.PASSED):
        return
    if found := story.mended_by(kernel, index.attempts(run.run_id)):
        st.button(
            f"Repaired in kernel {found.number}", icon=":material/healing:", key="panel_mended", type="tertiary",
            on_click=selection.choose, args=(run.run_id, found.candidate_id),
        )  # fmt: skip


def _diff(run: RunRow, kernel: CandidateRow, parent: AttemptRow | None) -> None:
    """What was edited, folded to the changed lines, and the way to everything else."""
    if parent:
        st.markdown(f"### Edit :gray[to kernel {parent.number}]")
        old, new = texts.source(run.run_id, parent.source_blob), texts.source(run.run_id, kernel.source_blob)
        names = (f"kernel {parent.number}", f"kernel {kernel.number}")
        is_long = (kernel.lines_added or 0) + (kernel.lines_removed or 0) > SHORT
        with st.container(height=340 if is_long else "content", border=False):
            diff.draw(old, new, names, key=f"panel_diff:{kernel.candidate_id}", is_compact=True)
    else:
        st.caption("Written from scratch: no parent to compare with.")
    if kernel.base_id not in (None, kernel.parent_id):
        target = {"run": run.run_id, "candidate": kernel.candidate_id, "tab": "Diff", "against": str(kernel.base_id)}
        st.page_link(
            "candidate.py", label="Diff against its base", icon=":material/difference:",
            query_params=target, width="content",
        )  # fmt: skip
    st.page_link(
        "candidate.py", label="Open kernel: source, profile, prompts, trust", icon=":material/open_in_full:",
        query_params={"run": run.run_id, "candidate": kernel.candidate_id}, width="content",
    )  # fmt: skip
