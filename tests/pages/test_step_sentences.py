"""Each step is told by one sentence."""

from __future__ import annotations

import pytest

from pages.parts import wording
from pages.parts.status.step_sentences import sentence
from storage.index.fold import StepResult
from storage.index.queries import StepRow
from storage.results.evaluation_results import TimingFigures
from storage.results.vocabulary import Verdict

NO = StepResult()
FIRST = StepResult(number=1)


def timed(noise: float) -> StepResult:
    """A kernel that was timed, with an interval as wide as its noise says."""
    low, high = (0.9, 8.0) if noise > 1 else (1.9, 2.1)
    return StepResult(1, verdict=Verdict.PASSED, timed=TimingFigures(2.0, low, high, noise, 0.5, 1.0, "eager"))


@pytest.mark.parametrize(
    ("kind", "outcome", "result", "text"),
    [
        ("synthesise", None, NO, "The model is writing the first kernel"),
        ("consult", None, FIRST, "Looking up what is known for kernel 1"),
        ("time", "interrupted", FIRST, "Timing kernel 1: interrupted"),
        ("mutilate", None, FIRST, "The model is at the step mutilate: kernel 1"),
        ("synthesise", "created", StepResult(made_number=1), "Wrote kernel 1"),
        ("compile", "passed", StepResult(1, verdict=Verdict.PASSED), "Kernel 1 compiles"),
        (
            "check", "runtime_error", StepResult(1, verdict=Verdict.RUNTIME_ERROR, message="illegal access"),
            "Kernel 1 crashed: illegal access",
        ),
        (
            "check", "passed", StepResult(1, verdict=Verdict.PASSED, max_error=1e-6, tolerance=1e-4),
            "Kernel 1 is correct: error nearest its tolerance 1.0e-06, 1.0e-04 allowed",
        ),
        ("profile", "profiled", StepResult(1, bound="memory"), "Profiled kernel 1: bound by memory"),
        (
            "profile", "profiled", StepResult(1, bound="underutilised"),
            "Profiled kernel 1: bound by latency, grid below one wave",
        ),
        (
            "optimise", "created", StepResult(1, "c002", 2, "wider loads", 1.5),
            "Optimised kernel 1 into kernel 2: wider loads (predicted gain 1.50×)",
        ),
        (
            "time", "passed", timed(0.05), "Kernel 1 takes 0.500 ms, 2.00× over eager",
        ),
        (
            "time", "passed", timed(1.5), "Kernel 1 takes 0.500 ms, 0.90 to 8.00× over eager",
        ),
        ("tune", "tuned", FIRST, "Tuned kernel 1: a variant is faster"),
        ("tune", "incorrect", FIRST, "Tuned kernel 1: as written it gives wrong results when timed again"),
        (
            "consult", "done", StepResult(1, state="cache_inefficient", techniques=1, is_by_base=True),
            "Looked up kernel 1 in the knowledge base: cache_inefficient, 1 technique found",
        ),
        (
            "consult", "done", StepResult(1, state="", is_by_base=True),
            "Looked up kernel 1 in the knowledge base: state not known, 0 techniques found",
        ),
        (
            "consult", "done", StepResult(1, state="cache_inefficient"),
            "Named the state of kernel 1 from its profile: cache_inefficient",
        ),
        (
            "teach", "done", StepResult(1, lesson="wider words help here"),
            "Revised the knowledge base: wider words help here",
        ),
    ],
)  # fmt: skip
def test_a_step_says_what_it_does_or_what_came_of_it(
    kind: str, outcome: str | None, result: StepResult, text: str
) -> None:
    is_in_flight = outcome is None
    assert sentence(StepRow(1, 1, kind, 0, None, 0.0, 1.0, outcome, is_in_flight, result=result)) == text


def test_a_best_so_far_that_is_known_too_widely_is_told_as_the_range_of_its_kernel() -> None:
    sure, wide = TimingFigures(1.5, 1.4, 1.6, 0.07, 0.5, 1.0, "eager"), TimingFigures(2.0, 0.9, 8.0, 1.5, 0.5, 1.0, "")
    assert wording.best_so_far(2.0, 1.5, [sure, wide]) == "0.90 to 8.00×"
    assert wording.best_so_far(1.5, 0.07, [sure, wide]) == wording.ratio(sure) == "1.50×"
    assert wording.best_so_far(None, None, []) == wording.NONE
