"""Why a kernel failed: where its numbers go wrong, or the compiler's words; how it was mended, and where it failed so
before."""

from __future__ import annotations

import re

import streamlit as st

from pages.parts import client, index, wording
from pages.parts.kernel import compiler_log, heat_words, mended
from pages.parts.widgets import table
from storage import queries
from storage.queries import CandidateRow, CorrectnessErrorRow, EvaluationRow

FACTS = [table.Column("name", "Fact", "nowrap"), table.Column("value", "Value")]
_FIGURES = re.compile(r"largest absolute error [^ ]*[\d)an]\.\s*(.*)$", re.DOTALL)

_heat = st.components.v2.component(
    "tilewright_heat", html=client.read("heat.html"), css=client.read("heat.css"), js=client.read("heat.js")
)


def draw(run_id: str, candidate: CandidateRow) -> None:
    """Correctness first, then the compiler, then the repair."""
    db = index.current()
    evaluation = queries.evaluation(db, run_id, candidate.candidate_id)
    errors = queries.correctness_errors(db, run_id, candidate.candidate_id)
    if evaluation is None:
        st.caption("Not built yet. Errors from the compiler and the check are listed here.")
        return
    if not errors and evaluation.compile_ok:
        if evaluation.check_verdict is None:
            st.info("Compiles. Results not checked yet.", icon=":material/hourglass_top:")
        else:
            st.success("No errors: compiles and agrees with the reference in every trial.", icon=":material/check:")
    for error in errors:
        _mismatch(error, evaluation)
    compiler_log.draw(run_id, candidate, evaluation)
    mended.draw(run_id, candidate, index.attempts(run_id))


def _mismatch(error: CorrectnessErrorRow, evaluation: EvaluationRow) -> None:
    st.markdown(f"## Against the reference :gray[{wording.moment(error.at)}]")
    found = pattern(error.message)
    st.error(wording.plain(error.message.removesuffix(found).strip()), icon=":material/error:")
    if found:
        st.markdown(f"**Pattern:** {wording.plain(found)}")
    if error.total_count is None:
        return
    left, right = st.columns([1, 1], gap="medium")
    with left:
        rows = [table.Row(name, {"name": name, "value": value}) for name, value in facts(error, evaluation)]
        table.draw(
            "First wrong element and size of the error", FACTS, rows, key=f"mismatch:{error.seq}", is_compact=True
        )
    with right:
        if error.heat:
            words = heat_words.sentence(error.heat)
            _heat(data={"heat": error.heat, "shape": list(error.shape), "words": words}, key=f"heat:{error.seq}")


def pattern(message: str) -> str:
    """What the wrong elements have in common, as the evaluator told it behind the figures; empty where it did not."""
    found = _FIGURES.search(message)
    return found[1].strip() if found else ""


def facts(error: CorrectnessErrorRow, evaluation: EvaluationRow | None = None) -> list[tuple[str, str]]:
    """What is wrong, in numbers."""
    wrong, total = error.wrong_count or 0, error.total_count or 0
    found = [
        ("trial", error.trial or wording.NONE),
        ("output shape", " × ".join(map(str, error.shape)) or "scalar"),
        ("first wrong index", f"[{', '.join(map(str, error.first_index))}]"),
        ("expected there", _value(error.expected)),
        ("actual there", _value(error.actual)),
        ("wrong elements", f"{wrong:,} of {total:,} ({100 * wrong / total:.3g} %)" if total else wording.NONE),
        ("largest absolute error", _value(error.max_abs_error)),
        ("largest relative error", _value(error.max_rel_error)),
    ]
    if evaluation and evaluation.tolerance:
        found.append(("allowed relative error", f"{evaluation.tolerance:.3g}"))
        if error.max_rel_error is not None:
            found.append(
                ("largest error / allowed", f"{wording.significant(error.max_rel_error / evaluation.tolerance)}×")
            )
    return found


def _value(value: float | None) -> str:
    return wording.NONE if value is None else f"{value:.7g}"
