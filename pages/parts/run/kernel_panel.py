"""One kernel beside the curve: what changed, how fast it became, and why: what was wrong, what was edited, what the
profile says, what it cost."""

from __future__ import annotations

import streamlit as st

from pages.parts import client, index, method, texts, wording
from pages.parts.kernel import kernel_header, mark, metrics, repair_tab, story
from pages.parts.kernel.metrics import Judgement
from pages.parts.run import selection
from pages.parts.status import outcome
from pages.parts.widgets import diff, table
from storage.index import queries
from storage.index.queries import AttemptRow, CandidateRow, CorrectnessErrorRow, CostRow, NeighbourRow, PatchRow, RunRow
from storage.results import relative
from storage.results.vocabulary import Verdict

SHORT = 12  # changed lines that need no scrolling of their own
MOST = 6  # figures of a profile
LONG = 400  # characters of a diagnosis that need no scrolling of their own

_reveal = st.components.v2.component(
    "tilewright_reveal", html='<span class="reveal"\n hidden></span>', js=client.read("run/reveal.js")
)


def draw(run: RunRow, candidate_id: str) -> None:
    """The panel of the open kernel, or a word that there is no such kernel."""
    db = index.current()
    with st.container(border=True, key="kernel_panel"):
        neighbours = queries.neighbours(db, run.run_id, candidate_id)
        kernel = queries.candidate(db, run.run_id, candidate_id)
        _head(run, kernel, neighbours)
        _reveal(data={"id": candidate_id}, key="reveal", height=1)
        if kernel is None:
            st.info(f"This run has no kernel **{wording.plain(candidate_id)}** yet.", icon=":material/search_off:")
            return
        parent = queries.candidate(db, run.run_id, kernel.parent_id) if kernel.parent_id else None
        base = queries.candidate(db, run.run_id, kernel.base_id) if kernel.base_id else None
        _outcome(kernel, parent, base, is_on_gpu=run.is_on_gpu)
        _explain(run, kernel)
        _mended(run, kernel)
        _diff(run, kernel, parent)


def _head(run: RunRow, kernel: CandidateRow | None, neighbours: NeighbourRow | None) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"## Kernel {kernel.number}" if kernel else "## Kernel", width="content")
        st.space("stretch")
        previous_id, next_id = (neighbours.previous_id, neighbours.next_id) if neighbours else (None, None)
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
        found = mark.of(run.run_id, kernel.candidate_id)
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            kernel_header.badges(kernel)
            mark.badge(found)
            draw_looks(run, kernel.candidate_id)
        mark.caption(found)


def draw_looks(run: RunRow, candidate_id: str) -> str:
    """What could change a kernel's verdict, as the way to *Trust*; nothing where nothing could. Returns what is to be
    done about it, in sentences."""
    count, advice = outcome.to_look_at(index.current(), run.run_id, candidate_id)
    if count:
        target = {"run": run.run_id, "candidate": candidate_id, "tab": "Trust"}
        st.page_link(
            "candidate.py", label=f":orange-badge[:material/flag: {count} to look at]", query_params=target,
            help=f"could change the verdict: open Trust. {advice}", width="content",
        )  # fmt: skip
    return advice


def _outcome(kernel: CandidateRow, parent: AttemptRow | None, base: AttemptRow | None, *, is_on_gpu: bool) -> None:
    """What changed, and the speed-up it gave."""
    st.markdown(f"**{wording.plain(wording.as_written_here(kernel.summary)) or wording.ORIGIN_NAME[kernel.origin]}**")
    if kernel.speedup is None:
        return
    other = parent if parent and parent.speedup is not None else base
    change = relative.gain(kernel, other, is_on_gpu=is_on_gpu) if other else None
    left, right = st.columns([1, 1.35])
    speed = wording.ratio(kernel)
    left.metric("Over eager PyTorch", speed, help=kernel_header.INTERVAL)
    left.caption(f"{wording.beside(kernel.noise, kernel.low, kernel.high)} · {wording.latency(kernel.latency_ms)}")
    if change and other:
        what = "parent" if other is parent else "base"
        right.metric(f"Over {what} (kernel {other.number})", wording.ratio(change))
        right.caption(f"{story.faster_or_slower(change).capitalize()} ({wording.interval(change.low, change.high)})")
        if anew := story.moved(kernel, other, change):
            st.caption(wording.plain(anew))


def _mended(run: RunRow, kernel: CandidateRow) -> None:
    """The way from a failed kernel to the one that mended it."""
    if kernel.verdict in (None, Verdict.PASSED):
        return
    if mender := story.mended_by(kernel, index.attempts(run.run_id)):
        st.button(
            f"Repaired in kernel {mender.number}", icon=":material/healing:", key="panel_mended", type="tertiary",
            on_click=selection.choose, args=(run.run_id, mender.candidate_id),
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


def _explain(run: RunRow, kernel: CandidateRow) -> None:
    """Error, diagnosis, edit, profile and cost, each only where there is one."""
    db = index.current()
    _error(run, kernel)
    _diagnosis(run, kernel)
    if review := repair_tab.led_here(index.current(), run.run_id, kernel.candidate_id):
        repair_tab.draw_review(run.run_id, kernel, review)
    patches = [p for p in queries.patches(db, run.run_id, kernel.candidate_id) if p.made_id == kernel.candidate_id]
    _edit_and_cost(run, kernel, patches, cost(queries.kernel_cost(db, run.run_id, kernel.candidate_id), run.model))
    _metrics(run, kernel)


def _error(run: RunRow, kernel: CandidateRow) -> None:
    if kernel.verdict in (None, Verdict.PASSED):
        return
    st.error(wording.plain(wording.cut(kernel.message, 400)) or "It failed without a message.", icon=":material/error:")
    errors = queries.correctness_errors(index.current(), run.run_id, kernel.candidate_id)
    if errors and (where := where_wrong(errors[0])):
        st.caption(wording.plain(where))


def _diagnosis(run: RunRow, kernel: CandidateRow) -> None:
    """What the model thought was wrong: with its parent, which led here, else with this kernel itself."""
    diagnoses = queries.diagnoses(index.current(), run.run_id, kernel.candidate_id)
    if not diagnoses:
        return
    before = [d for d in diagnoses if d.candidate_id == kernel.parent_id]
    chosen = (before or diagnoses)[-1]
    whose = f"of the parent, kernel {kernel.parent_number}" if before else "of this kernel"
    st.markdown(f"### Diagnosis :gray[{whose}]")
    text = texts.source(run.run_id, chosen.text_blob)
    with st.container(height=150 if len(text) > LONG else "content"):
        st.markdown(wording.prose(text))


def _edit_and_cost(run: RunRow, kernel: CandidateRow, patches: list[PatchRow], cost: str) -> None:
    origin = f", from kernel {kernel.parent_number}" if kernel.parent_number else ""
    if kernel.second_parent_number:
        origin = f", from kernels {kernel.parent_number} and {kernel.second_parent_number}"
    lines = f", +{kernel.lines_added} −{kernel.lines_removed} lines" if kernel.parent_number else ""
    edits = next((p.edit_count for p in reversed(patches) if p.is_applied), 0)
    edited = f", {edits} {'edit' if edits == 1 else 'edits'}" if edits else ""
    refused = sum(not p.is_applied for p in patches)
    again = f", after {refused} {'patch' if refused == 1 else 'patches'} that did not apply" if refused else ""
    step = wording.plain(method.words(run.run_id).step)
    saw = " · the model saw a profile" if kernel.is_profile_exposed else ""
    st.markdown(
        f":material/edit_note: {wording.ORIGIN_NAME[kernel.origin].capitalize()} at {step} {kernel.depth}"
        f"{origin}{edited}{lines}{again}{saw}"
    )
    st.markdown(f":material/payments: {wording.plain(cost)}")


def _metrics(run: RunRow, kernel: CandidateRow) -> None:
    """What changed in the profile, most first: the nearest there is to a reason."""
    changes = queries.metric_changes(index.current(), run.run_id, kernel.candidate_id)
    if not changes:
        if kernel.verdict is Verdict.PASSED:
            how = "" if run.state.is_over else " *Collect profiles* under Steer profiles the kernels to come."
            st.caption(f"Not profiled.{how}")
        return
    before = next((c.previous_id for c in changes if c.previous_id), None)
    if before is None:
        st.caption(metrics.not_compared(index.current(), run.run_id, kernel.candidate_id))
        return
    neighbours = queries.neighbours(index.current(), run.run_id, before)
    moved = [judged for judged in metrics.weighed(changes) if judged.judgement is not Judgement.SAME]
    if not moved:
        st.caption(f"Profile: no notable change since {f'kernel {neighbours.number}' if neighbours else before}.")
        return
    # A heading of two lines would be covered by the table below it.
    st.markdown(f"### Profile :gray[against kernel {neighbours.number}]" if neighbours else "### Profile")
    rows = [table.Row(f"{i}", metrics.change_cells(judged)) for i, judged in enumerate(moved[:MOST])]
    table.draw(
        "Changes in the profile, what matters most for speed first", metrics.CHANGE_COLUMNS, rows, key="panel_metrics",
        is_compact=True, is_folding=True,
    )  # fmt: skip


def where_wrong(error: CorrectnessErrorRow) -> str:
    """Where a result goes wrong first, and by how much; empty where nothing could be compared."""
    if not error.total_count:
        return ""
    position = f"[{', '.join(map(str, error.first_index))}]"
    values = f"expected {_value(error.expected)}, got {_value(error.actual)}"
    return (
        f"First wrong index {position}: {values}. {error.wrong_count or 0:,} of {error.total_count:,} values are wrong."
    )


def _value(value: float | None) -> str:
    return wording.NONE if value is None else f"{value:.6g}"


def cost(costs: CostRow, model: str = "") -> str:
    """What the kernel has cost, on one line."""
    calls = wording.counted(costs.calls, "model call")
    spent = f"{wording.in_tokens(costs.tokens, model)} · {wording.cost(costs.cost_usd, model)}"
    if wording.is_unrecorded(costs.tokens, model) and wording.is_unrecorded(costs.cost_usd, model):
        spent = wording.NOTHING_RECORDED
    took = f"written in {wording.seconds(costs.writing_s)} · judged in {wording.seconds(costs.judging_s)}"
    return f"{calls} · {spent} · {took}"
