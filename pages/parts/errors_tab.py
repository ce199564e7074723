"""Why a kernel failed: the compiler's words, or where its numbers go wrong."""

from __future__ import annotations

import streamlit as st

from pages.parts import client, index, table, texts, wording
from storage import queries
from storage.queries import CandidateRow, CorrectnessErrorRow, EvaluationRow
from storage.records import Verdict

FACTS = [table.Column("name", "Fact", "nowrap"), table.Column("value", "Value")]

_heat = st.components.v2.component(
    "tilewright_heat",
    html='<figure><div class="heat" role="img"></div>\n<figcaption></figcaption></figure>',
    css=client.read("heat.css"),
    js=client.read("heat.js"),
)


def draw(run_id: str, candidate: CandidateRow) -> None:
    """Compiler first, then correctness."""
    db = index.current()
    evaluation = queries.evaluation(db, run_id, candidate.candidate_id)
    errors = queries.correctness_errors(db, run_id, candidate.candidate_id)
    if evaluation is None:
        st.caption("Not built yet.")
        return
    if not errors and evaluation.compile_ok:
        st.success("No errors: it compiles and agrees with the reference in every trial.", icon=":material/check:")
    for error in errors:
        _mismatch(error, candidate.message)
    _compiler(run_id, candidate, evaluation)


def _compiler(run_id: str, candidate: CandidateRow, evaluation: EvaluationRow) -> None:
    if evaluation.diagnostics or evaluation.remarks or evaluation.log_blob:
        is_refused = evaluation.compile_verdict is Verdict.REFUSED
        st.markdown("#### Refused, in the words that the model is told" if is_refused else "#### Compiler")
    if evaluation.diagnostics:
        st.code(evaluation.diagnostics, language=None, wrap_lines=True)
    if evaluation.remarks:
        st.markdown("\n".join(f"- {wording.plain(remark)}" for remark in evaluation.remarks))
    if evaluation.log_blob:
        log = st.expander("Whole build log", key=f"log:{candidate.candidate_id}", on_change="rerun")
        if log.open:
            log.code(texts.source(run_id, evaluation.log_blob), language=None, height=420)


def _mismatch(error: CorrectnessErrorRow, told: str) -> None:
    st.markdown(f"#### Against the reference :gray[{wording.moment(error.at)}]")
    if error.message != told:
        st.error(wording.plain(error.message), icon=":material/error:")
    if error.total_count is None:
        return
    left, right = st.columns([1, 1], gap="medium")
    with left:
        rows = [table.Row(name, {"name": name, "value": value}) for name, value in facts(error)]
        table.draw(
            "First wrong element and size of the error", FACTS, rows, key=f"mismatch:{error.seq}", is_compact=True
        )
    with right:
        if error.heat:
            _heat(data={"heat": error.heat, "shape": list(error.shape)}, key=f"heat:{error.seq}")


def facts(error: CorrectnessErrorRow) -> list[tuple[str, str]]:
    """What is wrong, in numbers."""
    wrong, total = error.wrong_count or 0, error.total_count or 0
    return [
        ("trial", error.trial or wording.NONE),
        ("output shape", " × ".join(map(str, error.shape)) or "scalar"),
        ("first wrong index", f"[{', '.join(map(str, error.first_index))}]"),
        ("expected there", _value(error.expected)),
        ("actual there", _value(error.actual)),
        ("wrong elements", f"{wrong:,} of {total:,} ({100 * wrong / total:.3g} %)" if total else wording.NONE),
        ("largest absolute error", _value(error.max_abs_error)),
        ("largest relative error", _value(error.max_rel_error)),
    ]


def _value(value: float | None) -> str:
    return wording.NONE if value is None else f"{value:.7g}"
