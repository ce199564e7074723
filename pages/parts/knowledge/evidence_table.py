"""Every attempt that runs have kept: filters, predicted against measured gains, a table that leads to the kernels."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from pages.parts import index, wording
from pages.parts.knowledge import known_tables
from pages.parts.knowledge.known_tables import choice
from pages.parts.widgets import diagonal, plot, table
from pages.parts.widgets.diagonal import Group, Point
from storage.index import queries
from storage.index.queries import learning
from storage.knowledge import browsing, same_change
from storage.knowledge.browsing import EvidenceChoices, EvidenceFilter, PredictedRow
from storage.knowledge.records import Evidence, Outcome
from storage.results.vocabulary import KernelClass

TEXT, TECHNIQUE, OUTCOME, TASK, RUN = "find_attempt", "of_technique", "outcome", "of_task", "of_run"
OUTCOME_TONE: dict[Outcome, wording.Tone] = {
    Outcome.FASTER: "green",
    Outcome.SAME: "gray",
    Outcome.SLOWER: "orange",
    Outcome.INCORRECT: "red",
    Outcome.NOT_COMPILED: "red",
    Outcome.PATCH_FAILED: "violet",
}
OUTCOME_ICON = {Outcome.FASTER: "held", Outcome.SAME: "absent", Outcome.SLOWER: "flagged"}
POINTS = {
    Outcome.FASTER: ("@green-color", "circle"),
    Outcome.SAME: ("@gray-color", "diamond"),
    Outcome.SLOWER: ("@orange-color", "triangle-down"),
}
COLUMNS = [
    table.Column("technique", "Technique", "words"),
    table.Column("outcome", "Outcome"),
    table.Column("gain", "Measured gain", "right", "over the parent kernel, with its 95 % interval"),
    table.Column("predicted", "Predicted", "right", "by the model, over the parent kernel"),
    table.Column("eager", "Over eager", "right", "how fast the new kernel is over eager PyTorch"),
    table.Column("best", "Over the best", "right", "the same over the best alternative that its run has timed, if any"),
    table.Column("state", "State of the parent", "nowrap", "below it the kernel that was changed, if its run is here"),
    table.Column("task", "Task", "words", "below it its kernel class and the device"),
    table.Column(
        "run", "Run", "words", "opens the kernel, where its run is here; a change that several made counts once"
    ),
    table.Column("at", "When", "right"),
]


def draw() -> str | None:
    """Filters, picture and table of all attempts; what was opened just now, if anything."""
    base = index.known()
    chosen = _filter(browsing.choices(base), sorted(base.techniques), sorted(base.states))
    return draw_attempts(chosen, "attempts")


def _filter(choices: EvidenceChoices, techniques: Sequence[str], states: Sequence[str]) -> EvidenceFilter:
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="attempts_filter"):
        text = st.text_input(
            "Find", key=TEXT, type="search", placeholder="technique, task or error", width=200, bind="query-params",
            on_change=known_tables.first_part,
        )  # fmt: skip
        outcome = choice("Outcome", OUTCOME, list(Outcome), 150)
        technique = choice("Technique", TECHNIQUE, techniques, 220)
        state = choice("State", known_tables.STATE, states, 220)
        task = choice("Task", TASK, choices.tasks, 170)
        device = choice("Device", known_tables.DEVICE, choices.devices, 170)
        kernel_class = choice("Kernel class", known_tables.CLASS, list(KernelClass), 150)
        run_id = st.text_input("Run", key=RUN, placeholder="whole ID", width=170, bind="query-params",
                               on_change=known_tables.first_part)  # fmt: skip
    return EvidenceFilter(
        technique, state, task, kernel_class, "", device, outcome, "", (run_id or "").strip(), text or ""
    )


def draw_attempts(
    chosen: EvidenceFilter, key: str, has_technique: bool = True, nothing: str = "No attempt matches all filters."
) -> str | None:
    """The attempts that fit: their predictions as points, and a page of them as rows; `nothing` where none fits."""
    base = index.known()
    total = browsing.count(base, chosen)
    if not total:
        st.info(
            "No attempts yet." if chosen == EvidenceFilter() else nothing,
            icon=":material/science:",
        )
        return None
    clicked = draw_predictions(browsing.predicted(base, chosen), key)
    offset = (known_tables.part_number(total) - 1) * known_tables.PAGE_SIZE
    shown = browsing.attempts(base, chosen, known_tables.PAGE_SIZE, offset)
    told = [base.told_by(attempt) for attempt in shown]
    run_ids = {row.run_id for rows in told for row in rows}
    titles = queries.titles(index.current(), run_ids)
    bases = learning.bases(index.current(), [*run_ids], [row.candidate_id for rows in told for row in rows])
    rows = []
    for attempt, by in zip(shown, told, strict=True):
        kernel = next((row for row in (attempt, *by) if row.run_id in titles), None)
        drawn = cells(attempt, titles, by, bases)
        rows.append(table.Row(row_id(kernel or attempt), drawn, link(kernel) if kernel else ""))
    columns = COLUMNS if has_technique else [column for column in COLUMNS if column.key != "technique"]
    opened = table.draw("Attempts", columns, rows, key=key, is_cards=True)
    st.caption(f"{known_tables.showing(offset, len(shown), total, 'attempt')}, newest first")
    return opened or clicked


def draw_predictions(predicted: Sequence[PredictedRow], key: str) -> str | None:
    """Predicted against measured, a point per attempt; the attempt clicked just now."""
    if not predicted:
        st.caption("No attempt whose gain was both predicted and measured.")
        return None
    words = f"Measured against predicted gain of {wording.counted(len(predicted), 'attempt')}, a point each"
    clicked = plot.draw(figure(predicted), words, diagonal.HEIGHT, key, key=f"{key}_points")
    newest = f"The newest {browsing.NEWEST:,} that fit. " if len(predicted) == browsing.NEWEST else ""
    st.caption(
        f"{newest}Gain: latency of the parent kernel over that of the new one. On the dashed line a change gained what "
        "was predicted; below the dotted line it made the kernel slower. A point opens its kernel."
    )
    return clicked


def figure(predicted: Sequence[PredictedRow]) -> dict[str, Any]:
    """A point for each attempt, by outcome."""
    groups = [
        Group(str(outcome), colour, symbol, [_point(row) for row in predicted if row.outcome is outcome])
        for outcome, (colour, symbol) in POINTS.items()
    ]
    return diagonal.figure([group for group in groups if group.points], "the parent kernel", "attempts")


def _point(row: PredictedRow) -> Point:
    gains = f"predicted {wording.speedup(row.predicted_gain)}, measured {wording.speedup(row.gain)}"
    words = [row.state or "state not known", f"{row.task} on {row.device}" if row.device else row.task, row.run_id]
    lines = [html.escape(word, quote=False) for word in words]
    name = html.escape(row.technique or "no technique named", quote=False)
    return Point(
        row.predicted_gain, row.gain, "<br>".join([f"<b>{name}</b>", gains, *lines]),
        f"{row.run_id}\n{row.candidate_id}\n{row.technique}",
    )  # fmt: skip


def row_id(attempt: Evidence) -> str:
    """What tells it from every other attempt, in one line each."""
    return "\n".join(attempt.evidence_id)


def link(attempt: Evidence) -> str:
    """The deep link of its kernel, or of its run where no kernel came of it."""
    run = f"run={wording.in_address(attempt.run_id)}"
    return (
        f"candidate?{run}&candidate={wording.in_address(attempt.candidate_id)}"
        if has_kernel(attempt.candidate_id)
        else f"run?{run}"
    )


def has_kernel(candidate_id: str) -> bool:
    """False for an attempt of which no kernel came: it is named after its step."""
    return not candidate_id.startswith("step ")


def open_attempt(opened: str) -> None:
    """Go to the kernel of the attempt that was opened, or to its run."""
    run_id, candidate_id, _ = opened.split("\n", 2)
    if not has_kernel(candidate_id):
        st.switch_page("run.py", query_params={"run": run_id})
    st.switch_page("candidate.py", query_params={"run": run_id, "candidate": candidate_id})


def cells(
    attempt: Evidence,
    titles: Mapping[str, str],
    told: Sequence[Evidence] = (),
    bases: Mapping[tuple[str, str], int] | None = None,
) -> dict[str, table.Cell]:
    """One attempt as cells; `titles` are those of the runs that are here, `told` the rows that tell of it, `bases` the
    numbers of the kernels that were changed, by run and name of what became of it."""
    kernel = next((row for row in (attempt, *told) if row.run_id in titles), attempt)
    title = titles.get(kernel.run_id)
    where = kernel.origin and f"from {kernel.origin}"
    note = " · ".join(word for word in (kernel.candidate_id, where, same_change.in_words(told)) if word)
    kernels = "\n".join(f"{row.run_id} {row.candidate_id}" for row in told) if len(told) > 1 else ""
    base = (bases or {}).get((kernel.run_id, kernel.candidate_id))
    run = table.link(title, note, title=kernels) if title else table.text(
        wording.cut(kernel.run_id, 24), "", note, kernels
    )  # fmt: skip
    return {
        "technique": table.text(attempt.technique or "no technique named", "strong" if attempt.technique else "muted"),
        "outcome": table.pill(
            attempt.outcome, OUTCOME_TONE[attempt.outcome], OUTCOME_ICON.get(attempt.outcome, "broken"), attempt.error,
            wording.cut(attempt.error, 60),
        ),
        "gain": known_tables.gain_cell(
            attempt.gain, attempt.outcome is Outcome.FASTER, attempt.outcome is Outcome.SLOWER, _interval(attempt)
        ) if attempt.outcome.is_timed else wording.NONE,
        "predicted": wording.speedup(attempt.predicted_gain),
        "eager": wording.speedup(attempt.over_eager),
        "best": wording.speedup(attempt.over_best),
        "state": table.text(
            attempt.state or "not known", "" if attempt.state else "muted", f"kernel {base}" if base else ""
        ),
        "task": table.text(
            wording.task(attempt.task), "",
            f"{attempt.kernel_class} · {wording.cut(attempt.device, 26) or attempt.toolchain}", attempt.architecture,
        ),
        "run": run,
        "at": table.age(attempt.at),
    }  # fmt: skip


def _interval(attempt: Evidence) -> str:
    return "" if attempt.gain_low is None else wording.interval(attempt.gain_low, attempt.gain_high)
