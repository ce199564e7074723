"""What the compiler said about a kernel, with the lines of its source that it named beside it. Knows how both
toolchains name a line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from pages.parts import texts, wording
from pages.parts.widgets import code
from storage.queries import CandidateRow, EvaluationRow
from storage.records import Verdict

MOST_CHARACTERS = 200_000
MOST_EXCERPTS = 6
AROUND = 2
_OWN = re.compile(r"\bcandidate\.py[:(](\d+)")
_INNER = re.compile(r"\b(?:cpp|cuda)_sources\[\d+\][:(](\d+)")


def draw(run_id: str, candidate: CandidateRow, evaluation: EvaluationRow) -> None:
    """The message left, the lines right, the whole log folded away."""
    if not (evaluation.diagnostics or evaluation.remarks or evaluation.log_blob):
        return
    is_refused = evaluation.compile_verdict is Verdict.REFUSED
    st.markdown("## Refused (message shown to the model)" if is_refused else "## Compiler")
    if evaluation.diagnostics:
        _message(run_id, candidate, evaluation.diagnostics)
    if evaluation.remarks:
        st.markdown("\n".join(f"- {wording.plain(remark)}" for remark in evaluation.remarks))
    if evaluation.log_blob:
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
        found = excerpts(named, source.text)
        for number, one in enumerate(found[:MOST_EXCERPTS]):
            lines = coloured[one.first - 1 : one.first - 1 + len(one.lines)]
            name = f"Source lines {one.first} to {one.first + len(one.lines) - 1}"
            code.draw(name, lines, f"named:{number}:{candidate.candidate_id}", one.first, one.marked)
        if len(found) > MOST_EXCERPTS:
            st.caption(f"showing {MOST_EXCERPTS} of {len(found)} places")


def _whole(run_id: str, candidate: CandidateRow, blob: str) -> None:
    found = texts.read(run_id, blob)
    if found.is_gone:
        texts.say_gone(found, "build log")
        return
    if len(found.text) > MOST_CHARACTERS:
        st.caption(f"Showing {MOST_CHARACTERS:,} of {len(found.text):,} characters; download it to see all.")
    name = f"{run_id}-{candidate.candidate_id}-build.log"
    st.download_button("Download", found.text, name, icon=":material/download:", on_click="ignore", key="whole_log")
    st.code(found.text[:MOST_CHARACTERS], language=None, height=420)


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
    found = []
    for text in diagnostics.splitlines():
        found += [int(match[1]) for match in _OWN.finditer(text)]
        if len(starts) == 1:
            found += [starts[0] + int(match[1]) - 1 for match in _INNER.finditer(text)]
    return [line for line in dict.fromkeys(found) if 1 <= line <= count]


def excerpts(lines: Sequence[int], source: str, around: int = AROUND) -> list[Excerpt]:
    """The named lines with those near by, in the order of the source; what touches is one excerpt."""
    text = source.split("\n")
    groups: list[list[int]] = []
    for line in sorted(lines):
        if groups and line - groups[-1][-1] <= 2 * around + 1:
            groups[-1].append(line)
        else:
            groups.append([line])
    found = []
    for group in groups:
        first, last = max(1, group[0] - around), min(len(text), group[-1] + around)
        found.append(Excerpt(first, tuple(text[first - 1 : last]), tuple(group)))
    return found
