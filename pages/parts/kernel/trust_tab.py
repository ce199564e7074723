"""How far a kernel can be trusted: in one sentence; every check made of it, by group, with the figures behind verdict
and speed-up; pictures of its errors and of every timed call."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.parts import index, wording
from pages.parts.widgets import plot, table
from storage import kernel_names, observed, queries
from storage.check_records import CheckOutcome, CheckRecord, Group, StagedCheck, counted
from storage.observed import ObservedKernel, ObservedOperator
from storage.queries import BaselineRow, CandidateRow, EvaluationRow, TimingSamples
from storage.records import Verdict

COLUMNS = [
    table.Column("check", "Check"),
    table.Column("standing", "Result", "nowrap"),
    table.Column("detail", "Detail", "wide"),
]
FACTS = [table.Column("name", "Fact", "nowrap"), table.Column("value", "Value")]
OPERATORS = [
    table.Column("name", "Operator", "nowrap"),
    table.Column("does", "What it does", "nowrap"),
    table.Column("calls", "Times per call", "right"),
    table.Column("elements", "Elements per call", "right"),
    table.Column("share", "Share of the call's time", "right"),
]
KERNELS = [
    table.Column("name", "Kernel"),
    table.Column("origin", "Whose", "nowrap"),
    table.Column("launches", "Launches", "right"),
    table.Column("microseconds", "µs", "right"),
    table.Column("share", "Share", "right"),
]
ORIGIN_TONE = {"own": "green", "PyTorch": "orange", "foreign": "red"}
DETAIL_LENGTH = 2_000
STAGE_NAME = {"write": "writing", "compile": "building", "check": "checking", "time": "timing"}
PAIRS = ((Group.SCREENING, Group.ISOLATION), (Group.CORRECTNESS, Group.TIMING))
ROW_PX = 24
FLOOR = 1e-3


def draw(run_id: str, candidate: CandidateRow) -> None:
    """The sentence, then the groups two by two."""
    db = index.current()
    evaluation = queries.evaluation(db, run_id, candidate.candidate_id)
    check_records = queries.check_records(db, run_id, candidate.candidate_id)
    _overall(overall(candidate.verdict, candidate.speedup is not None, check_records))
    if evaluation is None and not check_records:
        return
    for pair in PAIRS:
        for group, column in zip(pair, st.columns(2, gap="medium"), strict=True):
            with column:
                _group(group, run_id, candidate, evaluation, check_records)


def _overall(found: Trust) -> None:
    boxes = {
        "green": (st.success, ":material/verified_user:"),
        "orange": (st.warning, ":material/flag:"),
        "red": (st.error, ":material/gpp_bad:"),
        "gray": (st.info, ":material/history:"),
    }
    box, icon = boxes.get(found.tone, (st.info, ":material/hourglass_top:"))
    box(f"**{wording.plain(found.sentence)}** {wording.plain(found.rest)}", icon=icon)


def _group(
    group: Group,
    run_id: str,
    candidate: CandidateRow,
    evaluation: EvaluationRow | None,
    check_records: Sequence[StagedCheck],
) -> None:
    checks = [row for row in check_records if row.group is group]
    facts = OF_GROUP[group](evaluation) if evaluation else []
    baseline = queries.baseline(index.current(), run_id) if group is Group.TIMING and facts else None
    facts += second(evaluation, baseline) if evaluation else []
    heading, name = wording.GROUP_NAME[group], candidate.candidate_id
    st.markdown(f"## {heading} :gray[{wording.plain(counted(checks)) if checks else ''}]")
    st.caption(wording.GROUP_ABOUT[group])
    if checks:
        rows = [table.Row(f"{i}", cells(row)) for i, row in enumerate(checks)]
        table.draw(f"Checks: {heading}", COLUMNS, rows, key=f"proofs:{group}:{name}", is_compact=True, is_folding=True)
    elif not facts or check_records:
        st.markdown(f":gray[{wording.plain(missing(group, candidate.verdict, evaluation))}]")
    if group is Group.CORRECTNESS:
        _draw_errors(run_id, candidate, measured(checks, evaluation))
        _draw_kernels(candidate, evaluation)
        _draw_operators(candidate, evaluation)
    if group is Group.TIMING:
        _draw_samples(run_id, candidate)
    if facts:
        rows = [table.Row(f"{i}", {"name": label, "value": value}) for i, (label, value) in enumerate(facts)]
        table.draw(f"Figures: {heading}", FACTS, rows, key=f"facts:{group}:{name}", is_compact=True)
    if baseline and baseline.speedup is None:
        st.caption(wording.plain(wording.not_measured(baseline.name, baseline.failure)))


def cells(row: StagedCheck) -> dict[str, table.Cell]:
    """One check as cells. Where it was made is told when that matters."""
    made = f"while {' and '.join(STAGE_NAME.get(stage, stage) for stage in row.stages)}"
    note = made if row.standing is not CheckOutcome.HELD and len(row.stages) > 1 else ""
    return {
        "check": table.text(row.check, "strong", title=made),
        "standing": table.pill(
            wording.CHECK_OUTCOME_NAME[row.standing], wording.CHECK_OUTCOME_TONE[row.standing], str(row.standing)
        ),
        "detail": table.text(row.detail[:DETAIL_LENGTH], note=note),
    }


def missing(group: Group, verdict: Verdict | None, evaluation: EvaluationRow | None) -> str:
    """Why a group has no checks."""
    if verdict is None:
        return "Not reached yet."
    if group is Group.TIMING:
        return "Not timed yet." if verdict is Verdict.PASSED else "Not timed: only correct kernels are."
    if group is not Group.SCREENING and (evaluation is None or evaluation.check_verdict is None):
        return "Not reached: the kernel did not run."
    return "No checks recorded."


def _draw_errors(run_id: str, candidate: CandidateRow, found: Sequence[Measured]) -> None:
    if not found:
        return
    name = f"Errors of {len(found)} checks, each as a share of its tolerance, log scale"
    height = errors_height(found)
    zoom = f"{run_id}:{candidate.candidate_id}:errors"
    plot.draw(errors(found), name, height, zoom, key=f"errors:{candidate.candidate_id}")


def _draw_kernels(candidate: CandidateRow, evaluation: EvaluationRow | None) -> None:
    """What ran on the GPU in the kernel's calls; nothing where nobody looked."""
    found = observed.kernels_of(evaluation.evidence) if evaluation else None
    if not found:
        return
    st.markdown("### Kernels that ran on the GPU")
    own = sum(one.share for one in found if one.origin == "own")
    st.caption(wording.plain(f"Per call. The file's own kernels took {own:.0%} of the GPU's time."))
    rows = [table.Row(f"{i}", kernel_cells(one)) for i, one in enumerate(found)]
    name = "Kernels that ran on the GPU, per call"
    table.draw(name, KERNELS, rows, key=f"kernels:{candidate.candidate_id}", is_compact=True, is_folding=True)


def kernel_cells(one: ObservedKernel) -> dict[str, table.Cell]:
    """One kernel as cells; PyTorch's is named with the operator that launched it."""
    return {
        "name": table.text(kernel_names.short(one.name), "strong"),
        "origin": table.pill(f"{one.origin}: {one.by}" if one.by else one.origin, ORIGIN_TONE.get(one.origin, "gray")),
        "launches": f"{one.launches:.3g}",
        "microseconds": f"{one.microseconds:.4g}",
        "share": f"{one.share:.1%}",
    }


def _draw_operators(candidate: CandidateRow, evaluation: EvaluationRow | None) -> None:
    """What PyTorch did in the kernel's calls; nothing where a version did not look."""
    found = observed.of(evaluation.evidence) if evaluation else None
    if found is None:
        return
    st.markdown("### PyTorch operators in forward")
    if not found:
        st.caption("None ran: the kernel's own code did everything.")
        return
    rows = [table.Row(f"{i}", operator_cells(one)) for i, one in enumerate(found)]
    name = "PyTorch operators that ran in forward, per call"
    st.caption(wording.plain(own_share(found)))
    table.draw(name, OPERATORS, rows, key=f"operators:{candidate.candidate_id}", is_compact=True, is_folding=True)


def own_share(found: Sequence[ObservedOperator]) -> str:
    """How much of a call was the kernel's own code, as far as times tell."""
    computing = [one.share for one in found if one.does == "computes"]
    if not computing:
        return "All computing was the kernel's own code."
    if any(share is None for share in computing):
        return "PyTorch computed a part of it; how much of the time is not known."
    library = min(1.0, sum(share for share in computing if share is not None))
    return f"Share of the call's time: own code {1 - library:.0%}, PyTorch's operators {library:.0%}."


def operator_cells(one: ObservedOperator) -> dict[str, table.Cell]:
    """One operator as cells; what computes is the library's work instead of the kernel's."""
    return {
        "name": table.text(one.name, "strong"),
        "does": table.pill(one.does, "red" if one.does == "computes" else "gray"),
        "calls": f"{one.calls:.3g}",
        "elements": "lists of tensors" if one.elements is None else f"{one.elements:,.0f}",
        "share": wording.NONE if one.share is None else f"{one.share:.1%}",
    }


def _draw_samples(run_id: str, candidate: CandidateRow) -> None:
    samples = queries.timing_samples(index.current(), run_id, candidate.candidate_id)
    if samples is None:
        return
    count = len(samples.candidate_ms)
    name = f"Latency of each timed call: {count} pairs of kernel and baseline"
    zoom = f"{run_id}:{candidate.candidate_id}"
    plot.draw(strip(samples), name, 200, zoom, key=f"samples:{candidate.candidate_id}")


@dataclass(frozen=True, slots=True)
class Measured:
    """One error and what it must not exceed, in one unit; `allowed` is above zero."""

    name: str
    error: float
    allowed: float
    is_wrong: bool

    @property
    def share(self) -> float:
        """Of what is allowed; an error that is no number counts as one without bound."""
        return math.inf if math.isnan(self.error) else self.error / self.allowed


def measured(check_records: Sequence[CheckRecord], evaluation: EvaluationRow | None) -> list[Measured]:
    """The errors that a candidate's checks of correctness have in figures; else the largest alone."""
    found = [
        Measured(row.check, row.value, row.limit, row.standing is CheckOutcome.BROKEN)
        for row in check_records
        if row.group is Group.CORRECTNESS and row.value is not None and row.limit is not None and row.limit > 0
    ]
    if found or evaluation is None or not evaluation.tolerance or evaluation.max_error is None:
        return found
    is_wrong = not evaluation.max_error <= evaluation.tolerance
    return [Measured("largest error", evaluation.max_error, evaluation.tolerance, is_wrong)]


def errors(found: Sequence[Measured]) -> dict[str, Any]:
    """Every error as a share of what is allowed, on a log scale; a line where the two are equal."""
    low, high = _span([one.share for one in found])
    limit = {"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1,
             "line": {"width": 1.6, "dash": "dash", "color": "@red-color"}}  # fmt: skip
    note = {"x": 0, "y": 1, "yref": "paper", "yanchor": "bottom", "text": "tolerance", "showarrow": False,
            "font": {"size": 11, "color": "@red-text-color"}}  # fmt: skip
    rows = {"tickvals": list(range(len(found))), "ticktext": [wording.cut(one.name, 26) for one in found],
            "range": [len(found) - 0.5, -0.5], "automargin": True}  # fmt: skip
    axis = {"type": "log", "range": [math.log10(low / 1.5), math.log10(high)], **_ticks(low, high),
            "title": {"text": "error as a share of its tolerance", "font": {"size": 12}}}  # fmt: skip
    layout = _layout(axis, rows) | {"shapes": [limit], "annotations": [note], "uirevision": "errors"}
    layout["margin"] = {"l": 8, "r": 12, "t": 22, "b": 40}
    return {"data": [_dots(found, low, high)], "layout": layout}


def _dots(found: Sequence[Measured], low: float, high: float) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "markers+text", "x": [min(max(one.share, low), high) for one in found],
        "y": list(range(len(found))), "text": ["exact" if one.share == 0 else "" for one in found],
        "textposition": "middle right", "textfont": {"size": 11, "color": "@gray-text-color"},
        "hovertext": [_hover(one) for one in found], "hovertemplate": "%{hovertext}<extra></extra>",
        "cliponaxis": False,
        "marker": {"size": 9, "symbol": [_symbol(one) for one in found],
                   "color": ["@red-color" if one.is_wrong else "@blue-color" for one in found]},
    }  # fmt: skip


def errors_height(found: Sequence[Measured]) -> int:
    """Pixels that so many rows need."""
    return 74 + ROW_PX * len(found)


def strip(samples: TimingSamples) -> dict[str, Any]:
    """All samples of both sides as points over a box."""
    sides = (
        (samples.baseline or "baseline", samples.baseline_ms, "@gray-color"),
        ("kernel", samples.candidate_ms, "@blue-color"),
    )
    traces = [
        {"type": "box", "orientation": "h", "name": name, "x": values, "boxpoints": "all", "jitter": 0.6, "pointpos": 0,
         "marker": {"size": 4, "color": colour, "opacity": 0.7}, "line": {"width": 1.2, "color": colour},
         "fillcolor": "rgba(0,0,0,0)", "hovertemplate": "%{x:.4g} ms<extra></extra>"}
        for name, values, colour in sides
    ]  # fmt: skip
    axis = {"title": {"text": "latency, ms", "font": {"size": 12}}}
    return {"data": traces, "layout": _layout(axis, {}) | {"uirevision": "samples"}}


def _span(shares: Sequence[float]) -> tuple[float, float]:
    """From below the smallest share to beyond the line, and beyond the largest."""
    shown = [share for share in shares if 0 < share < math.inf]
    return min([FLOOR, *shown]) / 3, max([3.0, *shown]) * 1.5


def _ticks(low: float, high: float) -> dict[str, Any]:
    """Powers of ten, in percent up to the line and in multiples beyond it; at most about eight."""
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    every = max(1, math.ceil((last - first) / 7))
    powers = [k for k in range(first, last + 1) if k % every == 0]
    texts = [f"{wording.significant(10.0 ** (k + 2), 1)} %" if k <= 0 else f"{10**k:,}×" for k in powers]
    return {"tickvals": [10.0**k for k in powers], "ticktext": texts}


def _hover(one: Measured) -> str:
    return f"{html.escape(one.name, quote=False)}: {one.error:.3g}, {one.allowed:.3g} allowed"


def _symbol(one: Measured) -> str:
    if one.share == math.inf:
        return "x"
    return "triangle-left-open" if one.share == 0 else "diamond" if one.is_wrong else "circle"


def _layout(xaxis: dict[str, Any], yaxis: dict[str, Any]) -> dict[str, Any]:
    axis = {"gridcolor": "@border-color", "zeroline": False}
    return {
        "showlegend": False, "margin": {"l": 70, "r": 12, "t": 8, "b": 40}, "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)", "font": {"color": "@text-color", "size": 12},
        "xaxis": axis | xaxis, "yaxis": axis | yaxis,
    }  # fmt: skip


Facts = list[tuple[str, str]]

_OF_THE_PROCESS = ("isolation", "isolated", "threads", "printed")


@dataclass(frozen=True, slots=True)
class Trust:
    """The overall standing. `tone` is green (correct), orange (needs a look), red (failed),
    blue (not judged yet) or gray (nothing recorded)."""

    tone: wording.Tone
    sentence: str
    rest: str = ""


def overall(verdict: Verdict | None, is_timed: bool, check_records: Sequence[CheckRecord]) -> Trust:
    """What stands behind a verdict, all checks together."""
    if not check_records:
        return _unrecorded(verdict)
    counts = counted(check_records)
    broken = _checks(check_records, CheckOutcome.BROKEN)
    match verdict:
        case None:
            return Trust("blue", f"Not judged yet: {counts} so far.")
        case Verdict.PASSED if broken:
            return Trust("red", f"Correct, although {broken} failed.", f"{counts}.")
        case Verdict.PASSED:
            word = "Correct" if is_timed else "Correct, not timed yet"
            flagged = _checks(check_records, CheckOutcome.FLAGGED)
            return Trust(
                "orange" if flagged else "green", f"{word}: {counts}.", f"Flagged: {flagged}." if flagged else ""
            )
        case Verdict.COMPILE_ERROR:
            return Trust("red", "Does not compile: neither checked nor timed.", f"{counts}.")
        case _:
            why = f": {broken} failed" if broken else ""
            return Trust("red", f"{_rejected(verdict, check_records)}{why}.", f"{counts}.")


def _checks(check_records: Sequence[CheckRecord], standing: CheckOutcome) -> str:
    names = dict.fromkeys(row.check for row in check_records if row.standing is standing)
    return ", ".join(f"“{name}”" for name in names)


def _rejected(verdict: Verdict, check_records: Sequence[CheckRecord]) -> str:
    groups = dict.fromkeys(str(row.group) for row in check_records if row.standing is CheckOutcome.BROKEN)
    if verdict is Verdict.REFUSED:
        return f"Refused{' by ' if groups else ''}{' and '.join(groups)}"
    return f"Failed, {wording.VERDICT_NAME[verdict]}"


def _unrecorded(verdict: Verdict | None) -> Trust:
    older = "Individual checks were not recorded for this kernel; the known figures are below."
    if verdict is None:
        return Trust("blue", "Not judged yet.")
    if verdict is Verdict.PASSED:
        return Trust("gray", "Correct.", older)
    return Trust("red", f"{_rejected(verdict, ())}.", older)


def screening(e: EvaluationRow) -> Facts:
    """The build."""
    cached = " (cached)" if e.compile_is_cached else ""
    return [] if e.compile_seconds is None else [("build", f"{wording.seconds(e.compile_seconds)}{cached}")]


def isolation(e: EvaluationRow) -> Facts:
    """What is known of the process that ran it."""
    return _named({name: value for name, value in e.evidence.items() if name in _OF_THE_PROCESS})


def correctness(e: EvaluationRow) -> Facts:
    """The comparison; nothing before it was made."""
    if e.check_verdict is None:
        return []
    found = [
        ("verdict", wording.VERDICT_NAME[e.verdict] if e.verdict else "not judged yet"),
        ("check", wording.seconds(e.check_seconds)),
        ("largest error", _number(e.max_error)),
        ("tolerance", _number(e.tolerance)),
        ("reference's own error", _number(e.reference_error)),
        ("largest absolute error", _number(e.max_abs_error)),
        ("precision", e.precision or wording.NONE),
        ("seed", wording.NONE if e.seed is None else str(e.seed)),
        ("trials", ", ".join(e.trials) or wording.NONE),
    ]
    return found + _named(
        {
            name: value
            for name, value in e.evidence.items()
            if name not in (*_OF_THE_PROCESS, observed.KEY, observed.KERNELS)
        }
    )


def timing(e: EvaluationRow) -> Facts:
    """The pairs; nothing before they were taken."""
    if not e.sample_count:
        return []
    found = [
        ("speed-up", f"{wording.speedup(e.speedup, e.noise)} ({wording.plus_minus(e.noise)})"),
        ("95 % interval", wording.interval(e.low, e.high)),
        ("kernel, median", wording.latency(e.latency_ms)),
        (f"{e.baseline or 'baseline'}, median", wording.latency(e.baseline_latency_ms)),
        ("pairs", f"{e.sample_count:,}"),
        ("took", wording.seconds(e.timing_seconds)),
    ]
    return found + _named(e.timing_evidence)


def second(e: EvaluationRow, baseline: BaselineRow | None) -> Facts:
    """The same kernel over the further baseline; nothing where that could not be measured."""
    found = baseline.under(e.speedup, e.noise) if baseline else None
    if found is None or baseline is None:
        return []
    itself = wording.speedup(baseline.speedup, baseline.noise)
    return [
        (
            f"over {baseline.name}",
            f"{wording.speedup(found.speedup, found.noise)} ({wording.plus_minus(found.noise)}, "
            f"95 %: {wording.interval(found.low, found.high)})",
        ),
        (
            f"{baseline.name} itself",
            f"{itself} over eager ({wording.plus_minus(baseline.noise)}), {wording.latency(baseline.latency_ms)}",
        ),
    ]


OF_GROUP: Mapping[Group, Callable[[EvaluationRow], Facts]] = {
    Group.SCREENING: screening,
    Group.ISOLATION: isolation,
    Group.CORRECTNESS: correctness,
    Group.TIMING: timing,
}


def _named(evidence: Mapping[str, str]) -> Facts:
    return [(name.replace("_", " "), value) for name, value in evidence.items()]


def _number(value: float | None) -> str:
    return wording.NONE if value is None else f"{value:.3g}"
