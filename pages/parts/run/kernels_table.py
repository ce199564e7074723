"""A run's kernels, newest first and page by page: what each is and how it was judged; and what they failed of, one row
per verdict and message."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from pages.parts import index, method, timed_anew, wording
from pages.parts.kernel import mark
from pages.parts.pass_rates import ABOUT, ABOUT_RANKING, PassRates, ranked
from pages.parts.run import selection
from pages.parts.status import beside_base
from pages.parts.widgets import table
from storage.index import queries
from storage.index.queries import AttemptRow, ErrorGroupRow, KernelFilter, OutcomeCount, RunRow
from storage.results.vocabulary import Verdict
from storage.run.labels import Mark
from storage.run.settings import RunState

PAGE_SIZE = 20
REASON_LENGTH = 110
COLUMNS = [
    table.Column("number", "Kernel"),
    table.Column("depth", "Step", "right minor"),
    table.Column("what", "What changed", "wide"),
    table.Column("verdict", "Verdict", "wide"),
    table.Column(
        "speedup", "Speed-up", "right", "over eager PyTorch, and the range in which it truly lies with 95 % probability"
    ),
    table.Column("latency", "Latency", "right minor", "median of the timed calls"),
    table.Column("lines", "Lines", "right minor", "added and removed against its parent"),
]
SHOWN_ERRORS = 12
ERROR_COLUMNS = [
    table.Column("count", "Kernels", "right", "kernels with this error"),
    table.Column("what", "Message", help="of the newest kernel; messages that differ only in numbers count as one"),
    table.Column("which", "Newest kernels"),
]


def draw(run: RunRow) -> str | None:
    """Draw the table; what was opened just now, if anything: a kernel's id, with `#Trust` after it for its flags."""
    st.markdown(f"## Kernels :gray[{run.attempts:,}]")
    if not run.attempts:
        still = "No kernels yet. The first one is listed as soon as it has been written."
        st.caption("No kernels: the run ended before the first." if run.state.is_finished else still)
        return None
    _tell_passes(run)
    chosen = _filter() if run.attempts > PAGE_SIZE else KernelFilter()
    db = index.current()
    total = queries.count_kernels(db, run.run_id, chosen)
    if not total:
        st.caption(f"None of the {run.attempts:,} kernels matches the filter.")
        return None
    number = min(int(st.session_state.get("kernels_page", 1)), -(-total // PAGE_SIZE))
    shown = queries.kernels(db, run.run_id, chosen, PAGE_SIZE, (number - 1) * PAGE_SIZE)
    flags = queries.outcome_counts(db, run.run_id, [k.candidate_id for k in shown])
    marks = mark.of_run(run.run_id)
    made = {kernel.candidate_id: kernel for kernel in index.attempts(run.run_id)}
    same = index.same_source(run.run_id)
    best = next((kernel for kernel in made.values() if kernel.is_best), None)
    rows = [
        table.Row(
            k.candidate_id,
            _cells(
                k,
                k.parent_number,
                flags.get(k.candidate_id),
                made.get(k.base_id or ""),
                best,
                marks.get(k.candidate_id),
                same.get(k.candidate_id),
                run.state is RunState.STOPPED,
                run.is_on_gpu,
            ),
            address(k),
        )
        for k in shown
    ]
    selected = selection.marked(run.run_id)
    titled = [
        replace(column, label=method.words(run.run_id).title) if column.key == "depth" else column for column in COLUMNS
    ]
    opened = table.draw(
        "Kernels of this run, newest first", titled, rows, key="kernels", selected=selected, is_folding=True
    )
    if anew := timed_anew.sentence(
        timing for k in shown for timing in timed_anew.kernel(k.number, k.speedup, k.latency_ms)
    ):
        st.caption(wording.plain(anew))
    _pages(run, total, (number - 1) * PAGE_SIZE + 1, len(shown))
    return opened


def _tell_passes(run: RunRow) -> None:
    """How often the model's kernels pass, in one line."""
    passed = (kernel for kernel in index.attempts(run.run_id) if kernel.verdict is Verdict.PASSED)
    db, unjudged = index.current(), queries.unjudged(index.current(), [run.run_id])
    rates = PassRates(queries.tries(db, [run.run_id]), run.cost_usd, run.model, unjudged.get(run.run_id, 0))
    if said := rates.sentence(next(passed, None)):
        st.caption(wording.plain(said), help=ABOUT)
    if ranking := ranked(queries.rankings(index.current(), run.run_id)):
        st.caption(wording.plain(ranking), help=ABOUT_RANKING)


def _filter() -> KernelFilter:
    """What the person wants to see of many kernels."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        verdict = st.selectbox(
            "Verdict", list(Verdict), index=None, format_func=wording.VERDICT_NAME.__getitem__, key="kernels_verdict",
            placeholder="any verdict", label_visibility="collapsed", width=190,
        )  # fmt: skip
        text = st.text_input(
            "Find kernels", key="kernels_text", placeholder="number, change or message", label_visibility="collapsed",
            width=280,
        )  # fmt: skip
    return KernelFilter(verdict, text)


def _pages(run: RunRow, total: int, first: int, count: int) -> None:
    if total > PAGE_SIZE:
        st.pagination(-(-total // PAGE_SIZE), key="kernels_page")
    of_all = f" matching kernels ({run.attempts:,} in all)" if total < run.attempts else ""
    if run.attempts > PAGE_SIZE:
        st.caption(f"Showing {first:,}–{first + count - 1:,} of {total:,}{of_all}")


def address(a: AttemptRow) -> str:
    """Deep link of a kernel, beside its run's curve."""
    return f"run?run={wording.in_address(a.run_id)}&candidate={a.candidate_id}"


def _cells(
    a: AttemptRow,
    parent: int | None,
    count: OutcomeCount | None,
    base: AttemptRow | None,
    best: AttemptRow | None,
    found: Mark | None,
    same: int | None,
    is_stopped: bool,
    is_on_gpu: bool,
) -> dict[str, table.Cell]:
    """One kernel as cells."""
    badges = [table.pill("best", "green", "best", wording.BEST)] if a.is_best else []
    if a.is_tied:
        tied = beside_base.tie(a, best, is_on_gpu=is_on_gpu)
        badges.append(table.pill("tied with the best", "green", "tied", tied))
    if a.verdict is Verdict.PASSED and not a.is_best:
        is_slower = beside_base.is_slower(a, base, is_on_gpu=is_on_gpu)
        outcome = wording.outcome(a, is_slower, is_stopped)
        tone, about = "blue" if a.is_accepted and not is_slower else "gray", wording.OUTCOME_ABOUT.get(outcome, "")
        badges.append(table.pill(outcome.removeprefix("correct, "), tone, "", about))
    badges += [table.pill("saw profile", "violet")] if a.is_profile_exposed else []
    if found:
        badges.append(table.pill(str(found.kind), wording.MARK_TONE[found.kind], "", mark.said(found)))
    if count and count.looks:
        opens = f"{a.candidate_id}#Trust"
        href = f"candidate?run={wording.in_address(a.run_id)}&candidate={a.candidate_id}&tab=Trust"
        badges.append(table.badge(f"{count.looks} to look at", "orange", "flagged", opens, href))
    return {
        "number": table.link(f"kernel {a.number}", f"from kernel {parent}" if parent else "", badges=()),
        "depth": str(a.depth),
        "what": table.text(
            wording.as_written_here(a.summary) or wording.ORIGIN_NAME[a.origin],
            note=origin(a) + same_as(same),
            badges=badges,
        ),
        "verdict": verdict(a),
        "speedup": speedup(a),
        "latency": wording.latency(a.latency_ms),
        "lines": f"+{a.lines_added} −{a.lines_removed}" if a.lines_added is not None and a.parent_id else wording.NONE,
    }


def same_as(number: int | None) -> str:
    """That an earlier kernel of the run has this very source; empty where none has."""
    return "" if number is None else f" · same source as kernel {number}"


def origin(a: AttemptRow) -> str:
    """How the kernel came to be, in a few words."""
    repeat = f" {a.repair}" if a.repair else f", try {a.generation + 1}" if a.generation else ""
    return f"{wording.ORIGIN_NAME[a.origin]}{repeat}"


def verdict(a: AttemptRow) -> table.Cell:
    """The verdict as a coloured word, with the message behind it; a refusal says why at once."""
    if a.verdict is None:
        return table.pill("not judged yet", "gray")
    icon = {Verdict.PASSED: "held", Verdict.REFUSED: "refused"}.get(a.verdict, "broken")
    reason = wording.cut(a.message, REASON_LENGTH) if a.verdict is Verdict.REFUSED else ""
    return table.pill(wording.VERDICT_NAME[a.verdict], wording.VERDICT_TONE[a.verdict], icon, a.message, reason)


def speedup(a: AttemptRow) -> table.Cell:
    """Speed-up with its interval; coloured only where that says faster or slower than the baseline."""
    if a.speedup is None:
        return table.text(wording.NONE, "muted")
    tone = wording.gain_tone(a.low, a.high)
    return table.text(wording.ratio(a), tone, wording.beside(a.noise, a.low, a.high))


def draw_errors(run: RunRow) -> None:
    """Draw the groups; nothing while nothing has failed."""
    if not run.failed:
        return
    groups = queries.error_groups(index.current(), run.run_id, SHOWN_ERRORS)
    st.markdown(f"## Errors by message :gray[{wording.counted(run.failed, 'kernel')}]")
    rows = [table.Row(f"{i}", _error_cells(run, group)) for i, group in enumerate(groups)]
    table.draw(
        "Failed kernels by message, most frequent first", ERROR_COLUMNS, rows, key="error_groups", is_compact=True
    )
    total = queries.count_error_groups(index.current(), run.run_id) if len(groups) == SHOWN_ERRORS else len(groups)
    if total > len(groups):
        st.caption(f"Showing the {len(groups)} largest of {total:,} groups")


def _error_cells(run: RunRow, group: ErrorGroupRow) -> dict[str, table.Cell]:
    """One group as cells."""
    depths = f"{method.words(run.run_id).step} {group.first_depth}"
    depths += f" to {group.last_depth}" if group.last_depth > group.first_depth else ""
    badges = [
        table.badge(f"kernel {number}", "gray", "", name, f"run?run={wording.in_address(run.run_id)}&candidate={name}")
        for name, number in zip(group.candidate_ids, group.numbers, strict=True)
    ]
    more = group.count - len(badges)
    return {
        "count": f"{group.count:,}",
        "what": table.text(wording.cut(group.message, 200), note=f"{wording.VERDICT_NAME[group.verdict]}, {depths}"),
        "which": table.text("", badges=badges, note=f"and {more:,} more (filter the table above)" if more > 0 else ""),
    }
