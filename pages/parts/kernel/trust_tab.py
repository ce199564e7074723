"""How far a kernel can be trusted: in one sentence; every check made of it, by group, with the figures behind verdict
and speed-up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from pages.parts import index, wording
from pages.parts.kernel import trust_charts
from pages.parts.kernel.trust_charts import Measured
from pages.parts.status import alternatives, settings_list
from pages.parts.widgets import plot, table
from storage.index import queries
from storage.index.queries import CandidateRow, EvaluationRow
from storage.results import deployment, kernel_names, observed
from storage.results.check_records import CheckOutcome, CheckRecord, Group, StagedCheck
from storage.results.deployment import Told, Trait
from storage.results.flags import Flag, counted, flags, in_words
from storage.results.observed import ObservedKernel, ObservedOperator
from storage.results.relative import baseline_ms
from storage.results.vocabulary import Verdict

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
    table.Column("launches", "Launches", "right", "per call, on average: one in some calls alone has less than 1"),
    table.Column("microseconds", "µs", "right"),
    table.Column("share", "Share", "right"),
]
OTHER_INPUTS = (
    "Its inputs are others than the timed ones, extreme and special values among them, and may take other ways through "
    "the kernels: their sum is not the latency."
)
ORIGIN_TONE = {"own": "green", "PyTorch": "orange", "foreign": "red"}
DETAIL_LENGTH = 2_000
PROPERTIES = [
    table.Column("name", "Property", "nowrap"),
    table.Column("standing", "Result", "nowrap"),
    table.Column("detail", "Detail", "wide"),
]
TRAIT_TONE: dict[Trait, wording.Tone] = {Trait.HELD: "green", Trait.LACKING: "orange", Trait.NOT_TRIED: "gray"}
STAGE_NAME = {
    "write": "writing",
    "compile": "building",
    "check": "checking",
    "time": "timing",
    "profile": "profiling",
}
PAIRS = ((Group.SCREENING, Group.ISOLATION), (Group.CORRECTNESS, Group.TIMING))


def draw(run_id: str, candidate: CandidateRow) -> None:
    """The sentence, then the groups two by two."""
    with st.container(key="trust"):
        _draw(run_id, candidate)


def _draw(run_id: str, candidate: CandidateRow) -> None:
    db = index.current()
    evaluation = queries.evaluation(db, run_id, candidate.candidate_id)
    check_records = queries.check_records(db, run_id, candidate.candidate_id)
    _overall(overall(candidate.verdict, candidate.speedup is not None, check_records))
    if any(flag.is_look for flag in flags(check_records)):
        _note(run_id)
    if older := settings_list.older_rules(run_id):
        st.caption(f":material/history: {wording.plain(older)}")
    if evaluation is None and not check_records:
        return
    for pair in PAIRS:
        for group, column in zip(pair, st.columns(2, gap="medium"), strict=True):
            with column:
                _group(group, run_id, candidate, evaluation, check_records)
    _draw_deployment(run_id, candidate)
    _draw_timelines(run_id, candidate)


def _note(run_id: str) -> None:
    """What is written about the run, which may say why a kernel is as it is."""
    run = queries.run(index.current(), run_id)
    if run and run.note:
        st.markdown(f":material/sticky_note_2: **Note on this run:** {wording.plain(run.note)}")


def _draw_deployment(run_id: str, candidate: CandidateRow) -> None:
    """What its callers rely on beside its answer; nothing of a kernel that nobody looked at."""
    seen = queries.deployment(index.current(), run_id, candidate.candidate_id)
    if seen is None:
        return
    st.markdown(f"## {deployment.TITLE}")
    st.caption(deployment.ABOUT)
    rows = [table.Row(told.name, deployment_cells(told)) for told in deployment.told(seen)]
    key = f"deployment:{candidate.candidate_id}"
    table.draw(deployment.TITLE, PROPERTIES, rows, key=key, is_compact=True, is_folding=True)


def deployment_cells(told: Told) -> dict[str, table.Cell]:
    """One property as cells."""
    tone = TRAIT_TONE[told.trait] if told.trait else "gray"
    return {
        "name": table.text(told.name, "strong"),
        "standing": table.pill(told.standing, tone),
        "detail": table.text(wording.as_written_here(told.sentence[:DETAIL_LENGTH])),
    }


def _draw_timelines(run_id: str, candidate: CandidateRow) -> None:
    """Where the time of each stage went; nothing of results that were remembered or whose version did not look."""
    timelines = queries.timelines(index.current(), run_id, candidate.candidate_id)
    if not timelines:
        return
    st.markdown("## Where the time went")
    st.caption("Wall time of each stage, its longest parts first")
    rows = [
        table.Row(stage, {"name": STAGE_NAME[stage], "value": timeline.in_words})
        for stage, timeline in timelines.items()
    ]
    table.draw("Where the time went", FACTS, rows, key=f"timelines:{candidate.candidate_id}", is_compact=True)


def _overall(trust: Trust) -> None:
    boxes = {
        "green": (st.success, ":material/verified_user:"),
        "orange": (st.warning, ":material/flag:"),
        "red": (st.error, ":material/gpp_bad:"),
        "gray": (st.info, ":material/history:"),
    }
    box, icon = boxes.get(trust.tone, (st.info, ":material/hourglass_top:"))
    box(f"**{wording.plain(trust.sentence)}** {wording.plain(trust.rest)}", icon=icon)


def _group(
    group: Group,
    run_id: str,
    candidate: CandidateRow,
    evaluation: EvaluationRow | None,
    check_records: Sequence[StagedCheck],
) -> None:
    checks = [row for row in check_records if row.group is group]
    facts = OF_GROUP[group](evaluation) if evaluation else []
    heading, name = wording.GROUP_NAME[group], candidate.candidate_id
    st.markdown(f"## {heading} :gray[{wording.plain(counted(checks)) if checks else ''}]")
    st.caption(wording.GROUP_ABOUT[group])
    if checks:
        found = flags(check_records)
        rows = [table.Row(f"{i}", cells(row, found)) for i, row in enumerate(checks)]
        table.draw(f"Checks: {heading}", COLUMNS, rows, key=f"proofs:{group}:{name}", is_compact=True, is_folding=True)
    elif not facts or check_records:
        st.markdown(f":gray[{wording.plain(missing(group, candidate.verdict, evaluation))}]")
    if group is Group.CORRECTNESS:
        _draw_errors(run_id, candidate, trust_charts.measured(checks, evaluation))
        _draw_kernels(candidate, evaluation)
        _draw_operators(candidate, evaluation)
    if group is Group.TIMING:
        _draw_samples(run_id, candidate)
    if facts:
        rows = [table.Row(f"{i}", {"name": label, "value": value}) for i, (label, value) in enumerate(facts)]
        table.draw(f"Figures: {heading}", FACTS, rows, key=f"facts:{group}:{name}", is_compact=True)
    if group is Group.TIMING and facts:
        _draw_alternatives(run_id, candidate)


def _draw_alternatives(run_id: str, candidate: CandidateRow) -> None:
    """Eager and every other baseline beside the kernel; nothing where the run has timed none."""
    told = alternatives.lines(queries.baselines(index.current(), run_id), candidate)
    keys = [column.key for column in alternatives.COLUMNS]
    rows = [table.Row(line[0], dict(zip(keys, line, strict=True))) for line in told]
    if rows:
        st.markdown(f"### {alternatives.TITLE}")
        st.caption(alternatives.ABOUT)
        table.draw(
            alternatives.TITLE, alternatives.COLUMNS, rows, key=f"alternatives:{candidate.candidate_id}",
            is_compact=True, is_cards=True,
        )  # fmt: skip


def cells(row: StagedCheck, found: Sequence[Flag]) -> dict[str, table.Cell]:
    """One check as cells, with what to do about it where it is flagged. Where it was made is told when that matters."""
    where = f"while {' and '.join(STAGE_NAME.get(stage, stage) for stage in row.stages)}"
    is_flagged = row.standing is CheckOutcome.FLAGGED
    notes = [where] if row.standing is not CheckOutcome.HELD and len(row.stages) > 1 else []
    notes += [flag.advice for flag in found if is_flagged and flag.check == row.check]
    word = in_words(row, found)
    return {
        "check": table.text(row.check, "strong", title=where),
        "standing": table.pill(word, wording.CHECK_TONE[word], str(row.standing)),
        "detail": table.text(wording.as_written_here(row.detail[:DETAIL_LENGTH]), note=". ".join(notes)),
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


def _draw_errors(run_id: str, candidate: CandidateRow, measured: Sequence[Measured]) -> None:
    if not measured:
        return
    name = f"Errors of {len(measured)} checks, each as a share of its tolerance, log scale"
    height = trust_charts.errors_height(measured)
    zoom = f"{run_id}:{candidate.candidate_id}:errors"
    plot.draw(trust_charts.errors(measured), name, height, zoom, key=f"errors:{candidate.candidate_id}")


def _draw_kernels(candidate: CandidateRow, evaluation: EvaluationRow | None) -> None:
    """What ran on the GPU in the kernel's calls; nothing where nobody looked."""
    kernels = observed.kernels_of(evaluation.evidence) if evaluation else None
    if not kernels:
        return
    st.markdown("### Kernels that ran on the GPU")
    own_part = sum(kernel.share for kernel in kernels if kernel.origin == "own")
    whose = f"The file's own kernels took {100 * own_part:.0f} % of the GPU's time."
    st.caption(wording.plain(f"Per call, on average over the calls of the check. {OTHER_INPUTS} {whose}"))
    rows = [table.Row(f"{i}", kernel_cells(kernel)) for i, kernel in enumerate(kernels)]
    name = "Kernels that ran on the GPU, per call"
    table.draw(name, KERNELS, rows, key=f"kernels:{candidate.candidate_id}", is_compact=True, is_folding=True)


def kernel_cells(kernel: ObservedKernel) -> dict[str, table.Cell]:
    """One kernel as cells; PyTorch's is named with the operator that launched it."""
    return {
        "name": table.text(kernel_names.short(kernel.name), "strong"),
        "origin": table.pill(
            f"{kernel.origin}: {kernel.by}" if kernel.by else kernel.origin, ORIGIN_TONE.get(kernel.origin, "gray")
        ),
        "launches": f"{kernel.launches:.3g}",
        "microseconds": f"{kernel.microseconds:.4g}",
        "share": f"{100 * kernel.share:.1f} %",
    }


def _draw_operators(candidate: CandidateRow, evaluation: EvaluationRow | None) -> None:
    """What PyTorch did in the kernel's calls; nothing where a version did not look."""
    operators = observed.of(evaluation.evidence) if evaluation else None
    if operators is None:
        return
    st.markdown("### PyTorch operators in forward")
    if not operators:
        st.caption("None ran: the kernel's own code did everything.")
        return
    rows = [table.Row(f"{i}", operator_cells(operator)) for i, operator in enumerate(operators)]
    name = "PyTorch operators that ran in forward, per call"
    st.caption(wording.plain(own_share(operators, observed.own_share(evaluation.evidence) if evaluation else None)))
    table.draw(name, OPERATORS, rows, key=f"operators:{candidate.candidate_id}", is_compact=True, is_folding=True)


def own_share(operators: Sequence[ObservedOperator], of_device: float | None = None) -> str:
    """How much of a call was the kernel's own code, as far as times tell: of a GPU `of_device`, what the file's own
    kernels took of the device's time."""
    computing = [operator.share for operator in operators if operator.does == "computes"]
    if not computing:
        return "All computing was the kernel's own code."
    if any(share is None for share in computing):
        if of_device is not None:
            took = f"the file's own kernels took {100 * of_device:.0f} % of the GPU's time"
            return f"PyTorch computed a part of it: {took}. What its operators took on the host is not known."
        return "PyTorch computed a part of it; how much of the time is not known."
    library = min(1.0, sum(share for share in computing if share is not None))
    return f"Share of the call's time: own code {100 * (1 - library):.0f} %, PyTorch's operators {100 * library:.0f} %."


def operator_cells(operator: ObservedOperator) -> dict[str, table.Cell]:
    """One operator as cells; what computes is the library's work instead of the kernel's."""
    return {
        "name": table.text(operator.name, "strong"),
        "does": table.pill(operator.does, "red" if operator.does == "computes" else "gray"),
        "calls": f"{operator.calls:.3g}",
        "elements": "lists of tensors" if operator.elements is None else f"{operator.elements:,.0f}",
        "share": wording.NONE if operator.share is None else f"{100 * operator.share:.1f} %",
    }


def _draw_samples(run_id: str, candidate: CandidateRow) -> None:
    samples = queries.timing_samples(index.current(), run_id, candidate.candidate_id)
    if samples is None:
        return
    count = len(samples.candidate_ms)
    name = f"Latency of each timed call: {count} pairs of kernel and baseline"
    zoom = f"{run_id}:{candidate.candidate_id}"
    plot.draw(trust_charts.strip(samples), name, 200, zoom, key=f"samples:{candidate.candidate_id}")


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
            looks = [flag for flag in flags(check_records) if flag.is_look]
            told = " ".join(f"Look at “{flag.check}”: {flag.advice}" for flag in looks)
            return Trust("orange" if looks else "green", f"{word}: {counts}.", told)
        case Verdict.COMPILE_ERROR:
            about = f"Of its text and of the sandbox that it was compiled in: {counts}."
            return Trust("red", "Does not compile: neither checked nor timed.", about)
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
    """How long the build took; nothing where nothing was built."""
    cached = " (cached)" if e.compile_is_cached else ""
    return [] if e.compile_seconds is None else [("build", f"{wording.seconds(e.compile_seconds)}{cached}")]


def isolation(e: EvaluationRow) -> Facts:
    """What is known of the process that ran it."""
    return _named({name: value for name, value in e.evidence.items() if name in _OF_THE_PROCESS})


def correctness(e: EvaluationRow) -> Facts:
    """The comparison; nothing before it was made."""
    if e.check_verdict is None:
        return []
    rows = [
        ("verdict", wording.VERDICT_NAME[e.verdict] if e.verdict else "not judged yet"),
        ("check", wording.seconds(e.check_seconds)),
        (wording.NEAREST, _number(e.max_error)),
        ("its tolerance", _number(e.tolerance)),
        ("reference's own error", _number(e.reference_error)),
        ("largest absolute error", _number(e.max_abs_error)),
        ("precision", e.precision or wording.NONE),
        ("seed", wording.NONE if e.seed is None else str(e.seed)),
        ("trials", ", ".join(e.made_trials) or wording.NONE),
    ]
    if e.left_out:
        rows.append(("trials left out", left_out(e.left_out)))
    return rows + _named(
        {
            name: value
            for name, value in e.evidence.items()
            if name not in (*_OF_THE_PROCESS, observed.KEY, observed.KERNELS)
        }
    )


def left_out(reasons: Mapping[str, str]) -> str:
    """Trials by the reason for which they were not made."""
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(name)
    return "; ".join(f"{', '.join(those)}: {reason}" for reason, those in names.items())


def timing(e: EvaluationRow) -> Facts:
    """The pairs; nothing before they were taken."""
    if e.untrusted:
        return [("not timed", f"{e.untrusted}: nothing is decided by what was measured")]
    if not e.sample_count:
        return []
    rows = [
        ("speed-up", wording.ratio(e)),
        ("95 % interval", wording.interval(e.low, e.high)),
        ("kernel, median over the pairs", wording.latency(e.latency_ms)),
        (f"{e.baseline or 'baseline'}, median over the pairs", wording.latency(e.baseline_latency_ms)),
        # The speed-up is the median over pairs; of noisy calls it is not what both medians give.
        (
            f"{e.baseline or 'baseline'} beside it, by the pairs' median ratio",
            wording.latency(baseline_ms(e.speedup, e.latency_ms)),
        ),
        ("pairs that tell it", f"{e.sample_count:,}"),
        ("took", wording.seconds(e.timing_seconds)),
    ]
    return rows + _named(e.timing_evidence)


OF_GROUP: Mapping[Group, Callable[[EvaluationRow], Facts]] = {
    Group.SCREENING: screening,
    Group.ISOLATION: isolation,
    Group.CORRECTNESS: correctness,
    Group.TIMING: timing,
}


def _named(evidence: Mapping[str, str]) -> Facts:
    return [(name.replace("_", " "), wording.as_written_here(value)) for name, value in evidence.items()]


def _number(value: float | None) -> str:
    return wording.NONE if value is None else f"{value:.3g}"
