"""Why a kernel failed: where its numbers go wrong, or the compiler's words with the lines of its source that they name;
how it was repaired, and where the run failed so before. Of one that was built, what the compiler noted. Knows how both
toolchains name a line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from pages.parts import client, index, method, texts, wording
from pages.parts.kernel import story
from pages.parts.widgets import code, table
from storage.index import queries
from storage.index.queries import AttemptRow, CandidateRow, CorrectnessErrorRow, EvaluationRow
from storage.results.check_records import trials_in_words
from storage.results.evaluation_results import percent_wrong
from storage.results.vocabulary import Verdict

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
            which = trials_in_words(len(evaluation.made_trials), [*evaluation.left_out.values()])
            agreed = which if evaluation.left_out else "every trial"
            said = f"No errors: compiles and agrees with the reference in {agreed}."
            st.success(wording.plain(said), icon=":material/check:")
    for error in errors:
        _mismatch(error, evaluation)
    draw_log(run_id, candidate, evaluation)
    _repair(run_id, candidate, index.attempts(run_id))


def _mismatch(error: CorrectnessErrorRow, evaluation: EvaluationRow) -> None:
    st.markdown(f"## Against the reference :gray[{wording.moment(error.at)}]")
    shared = pattern(error.message)
    said, _, more = error.message.removesuffix(shared).strip().partition("\n")
    st.error(wording.plain(said), icon=":material/error:")
    if more:  # of a crash: a traceback, what the sanitizer found, what was printed
        st.code(more, language=None, wrap_lines=True)
    if shared:
        st.markdown(f"**Pattern:** {wording.plain(shared)}")
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
    match = _FIGURES.search(message)
    return match[1].strip() if match else ""


def facts(error: CorrectnessErrorRow, evaluation: EvaluationRow | None = None) -> list[tuple[str, str]]:
    """What is wrong, in numbers."""
    wrong, total = error.wrong_count or 0, error.total_count or 0
    rows = [
        ("trial", error.trial or wording.NONE),
        ("output shape", " × ".join(map(str, error.shape)) or "scalar"),
        ("first wrong index", f"[{', '.join(map(str, error.first_index))}]"),
        ("expected there", _value(error.expected)),
        ("actual there", _value(error.actual)),
        ("wrong elements", f"{wrong:,} of {total:,} ({percent_wrong(wrong, total)} %)" if total else wording.NONE),
        ("largest absolute error", _value(error.max_abs_error)),
        ("largest relative error", _value(error.max_rel_error)),
    ]
    if evaluation and evaluation.tolerance:
        rows.append(("allowed relative error", f"{evaluation.tolerance:.3g}"))
        if error.max_rel_error is not None:
            rows.append(
                ("largest error / allowed", f"{wording.significant(error.max_rel_error / evaluation.tolerance)}×")
            )
    return rows


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


def _blocks(what: str, blocks: Sequence[int], total: int) -> str:
    if not blocks:
        return ""
    if len(blocks) == 1:
        return f"all of block {what} {blocks[0] + 1} of {total}"
    if blocks[-1] - blocks[0] == len(blocks) - 1:
        return f"all of block {what}s {blocks[0] + 1} to {blocks[-1] + 1} of {total}"
    return f"all of {len(blocks)} of {total} block {what}s"


def _other_blocks(blocks: set[tuple[int, int]], is_square: bool) -> str:
    if not blocks:
        return ""
    if is_square and len(blocks) > 1 and all(i == j for i, j in blocks):
        return f"{len(blocks)} on the diagonal"
    return f"{len(blocks)} elsewhere"


def _repair(run_id: str, candidate: AttemptRow, attempts: Sequence[AttemptRow]) -> None:
    """The mender with its diff and patch, then the same error elsewhere."""
    if candidate.verdict in (None, Verdict.PASSED):
        return
    mender = story.mended_by(candidate, attempts)
    st.markdown("## Repair")
    if mender is None:
        st.caption(_not_repaired(candidate, attempts))
    else:
        st.markdown(f"Repaired in **kernel {mender.number}**: {wording.plain(mender.summary)}")
        with st.container(horizontal=True, gap="small"):
            _link(run_id, mender, f"Kernel {mender.number}", "", {})
            _link(run_id, mender, "Diff to this kernel", "Diff", {"against": candidate.candidate_id})
            _link(run_id, mender, "Patch", "Diagnosis and patch", {})
    _elsewhere(run_id, candidate, alike(candidate, attempts))


def _not_repaired(candidate: AttemptRow, attempts: Sequence[AttemptRow]) -> str:
    if any(attempt.parent_id == candidate.candidate_id for attempt in attempts):
        return "Repairs were tried; none is correct."
    return "No repair tried yet."


def _elsewhere(run_id: str, candidate: AttemptRow, attempts: Sequence[AttemptRow]) -> None:
    st.markdown("## Other kernels with this error")
    if sentence := alike_words(candidate, attempts):
        st.markdown(sentence)
        others = [attempt for attempt in attempts if attempt.candidate_id != candidate.candidate_id]
        word = method.words(run_id).step
        with st.container(horizontal=True, gap="small"):
            for attempt in others[:MOST_LINKS]:
                _link(run_id, attempt, f"Kernel {attempt.number}, {word} {attempt.depth}", "Errors", {})
        if len(others) > MOST_LINKS:
            st.caption(f"Showing {MOST_LINKS} of {len(others)}")
    else:
        st.caption("None in this run (messages that differ only in numbers count as the same).")


def _link(run_id: str, attempt: AttemptRow, label: str, tab: str, more: dict[str, str]) -> None:
    target = {"run": run_id, "candidate": attempt.candidate_id} | ({"tab": tab} if tab else {}) | more
    st.page_link("candidate.py", label=label, query_params=target, width="content")


def error_of(a: AttemptRow) -> tuple[Verdict | None, str]:
    """What two kernels that failed alike have in common."""
    return a.verdict, " ".join(_NUMBER.sub("#", a.message).split())


def alike(a: AttemptRow, attempts: Sequence[AttemptRow]) -> list[AttemptRow]:
    """Every kernel of the run that failed in the way of `a`, it included, oldest first; none for one that did not."""
    if a.verdict in (None, Verdict.PASSED) or not a.message:
        return []
    error = error_of(a)
    return [attempt for attempt in attempts if attempt.message and error_of(attempt) == error]


def alike_words(a: AttemptRow, attempts: Sequence[AttemptRow]) -> str:
    """ "3 kernels of this run failed with this error; this is number 2."; empty where it is the only one."""
    if len(attempts) < 2:
        return ""
    position = [attempt.candidate_id for attempt in attempts].index(a.candidate_id) + 1
    return f"{len(attempts)} kernels of this run failed with this error; this is number {position}."


MOST_CHARACTERS = 200_000
MOST_EXCERPTS = 6
AROUND = 2
_OWN = re.compile(r"\bcandidate\.py[:(](\d+)")
_INNER = re.compile(r"\b(?:cpp|cuda)_sources\[\d+\][:(](\d+)")


def draw_log(run_id: str, candidate: CandidateRow, evaluation: EvaluationRow) -> None:
    """Why it was not built: the message left, the lines right, the whole log folded away."""
    if evaluation.compile_ok or not (evaluation.diagnostics or evaluation.log_blob):
        return
    is_refused = evaluation.compile_verdict is Verdict.REFUSED
    st.markdown("## Refused (message shown to the model)" if is_refused else "## Compiler")
    if evaluation.diagnostics:
        _message(run_id, candidate, evaluation.diagnostics)
    _draw_whole(run_id, candidate, evaluation)


def draw_notes(run_id: str, candidate: CandidateRow) -> None:
    """What the compiler noted of a kernel that it built, folded away: what it vectorised, registers, what was left
    out."""
    evaluation = queries.evaluation(index.current(), run_id, candidate.candidate_id)
    if evaluation is None or not evaluation.compile_ok:
        return
    if notes := evaluation.remarks:
        with st.expander(f"Notes of the compiler ({len(notes)})", icon=":material/info:"):
            st.markdown("\n".join(f"- {wording.plain(note)}" for note in notes))
    _draw_whole(run_id, candidate, evaluation)


def _draw_whole(run_id: str, candidate: CandidateRow, evaluation: EvaluationRow) -> None:
    if not evaluation.log_blob:
        return
    log = st.expander("Full build log", key=f"log:{candidate.candidate_id}", on_change="rerun")
    if log.open:
        with log:
            _whole(run_id, candidate, evaluation.log_blob)


def _message(run_id: str, candidate: CandidateRow, diagnostics: str) -> None:
    source = texts.read(run_id, candidate.source_blob)
    named = [] if source.is_gone else named_lines(diagnostics, source.text)
    if not named:
        st.code(diagnostics, language=None, wrap_lines=True)
        return
    left, right = st.columns(2, gap="medium")
    left.code(diagnostics, language=None, wrap_lines=True)
    with right:
        coloured = code.lines(source.text)
        parts = excerpts(named, source.text)
        for number, excerpt in enumerate(parts[:MOST_EXCERPTS]):
            lines = coloured[excerpt.first - 1 : excerpt.first - 1 + len(excerpt.lines)]
            name = f"Source lines {excerpt.first} to {excerpt.first + len(excerpt.lines) - 1}"
            code.draw(name, lines, f"named:{number}:{candidate.candidate_id}", excerpt.first, excerpt.marked)
        if len(parts) > MOST_EXCERPTS:
            st.caption(f"Showing {MOST_EXCERPTS} of {len(parts)} places")


def _whole(run_id: str, candidate: CandidateRow, blob: str) -> None:
    log = texts.read(run_id, blob)
    if log.is_gone:
        texts.say_gone(log, "build log")
        return
    if len(log.text) > MOST_CHARACTERS:
        st.caption(f"Showing {MOST_CHARACTERS:,} of {len(log.text):,} characters; download it to see all.")
    name = f"{run_id}-{candidate.candidate_id}-build.log"
    st.download_button("Download", log.text, name, icon=":material/download:", on_click="ignore", key="whole_log")
    code.draw_plain("Full build log", log.text[:MOST_CHARACTERS], key=f"build_log:{candidate.candidate_id}")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines `first`.. (from 1) of a source; `marked` are those the compiler named."""

    first: int
    lines: tuple[str, ...]
    marked: tuple[int, ...]


def named_lines(diagnostics: str, source: str) -> list[int]:
    """Line numbers of the module, from 1, in the order they are named; each once.

    A line of an inner source is told apart only where the module has one C++ text: else nobody knows which is meant.
    """
    count = source.count("\n") + 1
    starts = code.cpp_starts(source)
    numbers = []
    for text in diagnostics.splitlines():
        numbers += [int(match[1]) for match in _OWN.finditer(text)]
        if len(starts) == 1:
            numbers += [starts[0] + int(match[1]) - 1 for match in _INNER.finditer(text)]
    return [line for line in dict.fromkeys(numbers) if 1 <= line <= count]


def excerpts(lines: Sequence[int], source: str, around: int = AROUND) -> list[Excerpt]:
    """The named lines with those near by, in the order of the source; what touches is one excerpt."""
    text = source.split("\n")
    groups: list[list[int]] = []
    for line in sorted(lines):
        if groups and line - groups[-1][-1] <= 2 * around + 1:
            groups[-1].append(line)
        else:
            groups.append([line])
    parts = []
    for group in groups:
        first, last = max(1, group[0] - around), min(len(text), group[-1] + around)
        parts.append(Excerpt(first, tuple(text[first - 1 : last]), tuple(group)))
    return parts
