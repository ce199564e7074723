"""How far a kernel can be trusted: every check made of it, by group, with the figures behind verdict and speed-up."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.parts import index, wording
from pages.parts.kernel import trust, trust_facts, trust_figures
from pages.parts.widgets import plot, table
from storage import queries
from storage.proof import Group, StagedProof, Standing, counted
from storage.queries import CandidateRow, EvaluationRow
from storage.records import Verdict

COLUMNS = [
    table.Column("check", "Check"),
    table.Column("standing", "Result", "nowrap"),
    table.Column("detail", "Detail", "wide"),
]
FACTS = [table.Column("name", "Fact", "nowrap"), table.Column("value", "Value")]
DETAIL_LENGTH = 2_000
STAGE_NAME = {"write": "writing", "compile": "building", "check": "checking", "time": "timing"}
PAIRS = ((Group.SCREENING, Group.ISOLATION), (Group.CORRECTNESS, Group.TIMING))


def draw(run_id: str, candidate: CandidateRow) -> None:
    """The sentence, then the groups two by two."""
    db = index.current()
    evaluation = queries.evaluation(db, run_id, candidate.candidate_id)
    proofs = queries.proofs(db, run_id, candidate.candidate_id)
    _overall(trust.overall(candidate.verdict, candidate.speedup is not None, proofs))
    if evaluation is None and not proofs:
        return
    for pair in PAIRS:
        for group, column in zip(pair, st.columns(2, gap="medium"), strict=True):
            with column:
                _group(group, run_id, candidate, evaluation, proofs)


def _overall(found: trust.Trust) -> None:
    boxes = {
        "green": (st.success, ":material/verified_user:"),
        "orange": (st.warning, ":material/flag:"),
        "red": (st.error, ":material/gpp_bad:"),
        "gray": (st.info, ":material/history:"),
    }
    box, icon = boxes.get(found.tone, (st.info, ":material/hourglass_top:"))
    box(f"**{wording.plain(found.sentence)}** {wording.plain(found.rest)}", icon=icon)


def _group(
    group: Group, run_id: str, candidate: CandidateRow, evaluation: EvaluationRow | None, proofs: Sequence[StagedProof]
) -> None:
    mine = [row for row in proofs if row.group is group]
    facts = trust_facts.OF_GROUP[group](evaluation) if evaluation else []
    baseline = queries.baseline(index.current(), run_id) if group is Group.TIMING and facts else None
    facts += trust_facts.second(evaluation, baseline) if evaluation else []
    heading, name = wording.GROUP_NAME[group], candidate.candidate_id
    st.markdown(f"## {heading} :gray[{wording.plain(counted(mine)) if mine else ''}]")
    st.caption(wording.GROUP_ABOUT[group])
    if mine:
        rows = [table.Row(f"{i}", cells(row)) for i, row in enumerate(mine)]
        table.draw(f"Checks: {heading}", COLUMNS, rows, key=f"proofs:{group}:{name}", is_compact=True, is_folding=True)
    elif not facts or proofs:
        st.markdown(f":gray[{wording.plain(missing(group, candidate.verdict, evaluation))}]")
    if group is Group.CORRECTNESS:
        _errors(run_id, candidate, trust_figures.measured(mine, evaluation))
    if group is Group.TIMING:
        _samples(run_id, candidate)
    if facts:
        rows = [table.Row(f"{i}", {"name": label, "value": value}) for i, (label, value) in enumerate(facts)]
        table.draw(f"Figures: {heading}", FACTS, rows, key=f"facts:{group}:{name}", is_compact=True)
    if baseline and baseline.speedup is None:
        st.caption(wording.plain(wording.not_measured(baseline.name, baseline.failure)))


def cells(row: StagedProof) -> dict[str, table.Cell]:
    """One check as cells. Where it was made is told when that matters."""
    made = f"while {' and '.join(STAGE_NAME.get(stage, stage) for stage in row.stages)}"
    note = made if row.standing is not Standing.HELD and len(row.stages) > 1 else ""
    return {
        "check": table.text(row.check, "strong", title=made),
        "standing": table.pill(
            wording.STANDING_NAME[row.standing], wording.STANDING_TONE[row.standing], str(row.standing)
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


def _errors(run_id: str, candidate: CandidateRow, found: Sequence[trust_figures.Measured]) -> None:
    if not found:
        return
    name = f"Errors of {len(found)} checks, each as a share of its tolerance, log scale"
    height = trust_figures.errors_height(found)
    zoom = f"{run_id}:{candidate.candidate_id}:errors"
    plot.draw(trust_figures.errors(found), name, height, zoom, key=f"errors:{candidate.candidate_id}")


def _samples(run_id: str, candidate: CandidateRow) -> None:
    samples = queries.timing_samples(index.current(), run_id, candidate.candidate_id)
    if samples is None:
        return
    count = len(samples.candidate_ms)
    name = f"Latency of each timed call: {count} pairs of kernel and baseline"
    zoom = f"{run_id}:{candidate.candidate_id}"
    plot.draw(trust_figures.strip(samples), name, 200, zoom, key=f"samples:{candidate.candidate_id}")
