"""Why a kernel failed: where its numbers go wrong, or the compiler's words; how it was repaired, and where the run
failed so before."""

from __future__ import annotations

import re
from collections.abc import Sequence

import streamlit as st

from pages.parts import client, index, wording
from pages.parts.kernel import compiler_log, story
from pages.parts.widgets import table
from storage import queries
from storage.queries import AttemptRow, CandidateRow, CorrectnessErrorRow, EvaluationRow
from storage.records import Verdict

FACTS = [table.Column("name", "Fact", "nowrap"), table.Column("value", "Value")]
_FIGURES = re.compile(r"largest absolute error [^ ]*[\d)an]\.\s*(.*)$", re.DOTALL)
Heat = Sequence[Sequence[float]]
MOST_LINKS = 8
_NUMBER = re.compile(r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?%?", re.IGNORECASE)

_heat = st.components.v2.component(
    "tilewright_heat",
    html=client.read("kernel/heat.html"),
    css=client.read("kernel/heat.css"),
    js=client.read("kernel/heat.js"),
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
    _repair(run_id, candidate, index.attempts(run_id))


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
            words = heat_words(error.heat)
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


def heat_words(heat: Heat) -> str:
    """Where the wrong blocks lie: everywhere, whole rows, whole columns, the diagonal, or how many of how many."""
    rows, columns = len(heat), len(heat[0]) if heat else 0
    wrong = {(i, j) for i, row in enumerate(heat) for j, share in enumerate(row) if share > 0}
    total = rows * columns
    if not wrong:
        return "No block of the output has errors."
    if len(wrong) == total:
        return f"All {total} blocks of the output have errors."
    summary = f"{len(wrong)} of {total} blocks of the output have errors"
    whole_columns = [j for j in range(columns) if rows > 1 and all((i, j) in wrong for i in range(rows))]
    whole_rows = [i for i in range(rows) if columns > 1 and all((i, j) in wrong for j in range(columns))]
    rest = {(i, j) for i, j in wrong if i not in whole_rows and j not in whole_columns}
    parts = [
        _blocks("row", whole_rows, rows),
        _blocks("column", whole_columns, columns),
        _other_blocks(rest, rows == columns),
    ]
    named = [part for part in parts if part]
    return (
        f"{summary}: {', '.join(named)}."
        if named and (whole_rows or whole_columns or len(named) > 1)
        else f"{summary}."
    )


def _blocks(what: str, found: Sequence[int], total: int) -> str:
    if not found:
        return ""
    if len(found) == 1:
        return f"all of block {what} {found[0] + 1} of {total}"
    if found[-1] - found[0] == len(found) - 1:
        return f"all of block {what}s {found[0] + 1} to {found[-1] + 1} of {total}"
    return f"all of {len(found)} of {total} block {what}s"


def _other_blocks(found: set[tuple[int, int]], is_square: bool) -> str:
    if not found:
        return ""
    if is_square and len(found) > 1 and all(i == j for i, j in found):
        return f"{len(found)} on the diagonal"
    return f"{len(found)} elsewhere"


def _repair(run_id: str, candidate: AttemptRow, attempts: Sequence[AttemptRow]) -> None:
    """The mender with its diff and patch, then the same error elsewhere."""
    if candidate.verdict in (None, Verdict.PASSED):
        return
    found = story.mended_by(candidate, attempts)
    st.markdown("## Repair")
    if found is None:
        st.caption(_not_repaired(candidate, attempts))
    else:
        st.markdown(f"Repaired in **kernel {found.number}**: {wording.plain(found.summary)}")
        with st.container(horizontal=True, gap="small"):
            _link(run_id, found, f"Kernel {found.number}", "", {})
            _link(run_id, found, "Diff to this kernel", "Diff", {"against": candidate.candidate_id})
            _link(run_id, found, "Patch", "Diagnosis and patch", {})
    _elsewhere(run_id, candidate, alike(candidate, attempts))


def _not_repaired(candidate: AttemptRow, attempts: Sequence[AttemptRow]) -> str:
    if any(one.parent_id == candidate.candidate_id for one in attempts):
        return "Repairs were tried; none is correct."
    return "No repair tried yet."


def _elsewhere(run_id: str, candidate: AttemptRow, found: Sequence[AttemptRow]) -> None:
    st.markdown("## Other kernels with this error")
    if sentence := alike_words(candidate, found):
        st.markdown(sentence)
        others = [one for one in found if one.candidate_id != candidate.candidate_id]
        with st.container(horizontal=True, gap="small"):
            for one in others[:MOST_LINKS]:
                _link(run_id, one, f"Kernel {one.number}, depth {one.depth}", "Errors", {})
        if len(others) > MOST_LINKS:
            st.caption(f"showing {MOST_LINKS} of {len(others)}")
    else:
        st.caption("None in this run (messages that differ only in numbers count as the same).")


def _link(run_id: str, one: AttemptRow, label: str, tab: str, more: dict[str, str]) -> None:
    target = {"run": run_id, "candidate": one.candidate_id} | ({"tab": tab} if tab else {}) | more
    st.page_link("candidate.py", label=label, query_params=target, width="content")


def error_of(a: AttemptRow) -> tuple[Verdict | None, str]:
    """What two kernels that failed alike have in common."""
    return a.verdict, " ".join(_NUMBER.sub("#", a.message).split())


def alike(a: AttemptRow, attempts: Sequence[AttemptRow]) -> list[AttemptRow]:
    """Every kernel of the run that failed in the way of `a`, it included, oldest first; none for one that did not."""
    if a.verdict in (None, Verdict.PASSED) or not a.message:
        return []
    error = error_of(a)
    return [one for one in attempts if one.message and error_of(one) == error]


def alike_words(a: AttemptRow, found: Sequence[AttemptRow]) -> str:
    """ "3 kernels of this run failed with this error; this is number 2."; empty where it is the only one."""
    if len(found) < 2:
        return ""
    place = [one.candidate_id for one in found].index(a.candidate_id) + 1
    return f"{len(found)} kernels of this run failed with this error; this is number {place}."
