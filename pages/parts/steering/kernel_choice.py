"""Choosing a kernel of a run that a depth can start from. Knows which are fit, not what is done with the choice."""

from __future__ import annotations

import streamlit as st

from pages.parts import index, method, wording
from storage.index import queries
from storage.index.queries import AttemptRow, RunRow
from storage.results.vocabulary import Verdict
from storage.run.method_words import MethodWords


def targets(run: RunRow) -> list[AttemptRow]:
    """Kernels of finished depths that are correct and timed, newest first."""
    db = index.current()
    settled = {d.candidate_id for d in queries.depths(db, run.run_id) if d.outcome is not None}
    attempts = queries.attempts(db, run.run_id)
    return [a for a in attempts[::-1] if a.verdict is Verdict.PASSED and a.speedup and a.candidate_id in settled]


def current_base(run: RunRow) -> AttemptRow | None:
    """The kernel that the newest attempt was made from, or the newest accepted one."""
    attempts = queries.attempts(index.current(), run.run_id)
    by_id = {a.candidate_id: a for a in attempts}
    if not attempts:
        return None
    accepted = [a for a in attempts if a.is_accepted]
    newest = attempts[-1]
    base = by_id.get(newest.base_id or "")
    return base if base and not newest.is_accepted else (accepted[-1] if accepted else base)


def first(run: RunRow, kernels: list[AttemptRow]) -> str:
    """The kernel that a person most likely wants to go on from: the best; in a run that goes on from that by itself,
    what that was made from, else any other."""
    base = None if run.state.is_finished else current_base(run)
    wanted = [run.best_candidate_id, base.base_id if base else None, *(kernel.candidate_id for kernel in kernels)]
    names = {kernel.candidate_id for kernel in kernels} - {base.candidate_id if base else ""}
    return next((name for name in wanted if name in names), "") or ""


def label(a: AttemptRow, words: MethodWords) -> str:
    """One line in a list of kernels."""
    best = " · best" if a.is_best else ""
    failed = " · failed" if a.verdict not in (None, Verdict.PASSED) else ""
    speed = f" · {wording.ratio(a)}" if a.speedup else failed
    return f"kernel {a.number} · {words.step} {a.depth}{speed}{best} · {wording.cut(a.summary, 60)}"


def draw(run: RunRow, question: str, attempts: list[AttemptRow], key: str, candidate_id: str = "") -> AttemptRow:
    """A list to choose from; the kernel of that id is chosen first where one is asked for and in it."""
    names = [a.candidate_id for a in attempts]
    wanted = candidate_id if candidate_id in names else first(run, attempts)
    at = names.index(wanted) if wanted in names else 0
    words = method.words(run.run_id)
    return st.selectbox(question, attempts, index=at, format_func=lambda attempt: label(attempt, words), key=key)


def number(run: RunRow, candidate_id: str) -> str:
    """A kernel as people call it: "kernel 3"."""
    kernel = queries.candidate(index.current(), run.run_id, candidate_id)
    return f"kernel {kernel.number}" if kernel else candidate_id
