"""The reference through torch.compile, beside eager: when a run times it."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from engine.errors import BaselineUnavailable
from engine.evaluator.request import Evaluator
from engine.evaluator.tasks import Task
from engine.search.steps.evaluate import time_candidate
from storage.results.evaluation_results import TimingResult
from storage.run import events as ev
from tests.engine.contexts import add_candidate, open_context


class Compiler:
    """A toolchain that only compiles the reference: it fails with each of these, then succeeds."""

    def __init__(self, *failures: str) -> None:
        self.failures = list(failures)

    def compiled_baseline(self, task: Task) -> TimingResult:
        if self.failures:
            raise BaselineUnavailable(self.failures.pop(0))
        return TimingResult((1.0,) * 9, (2.0,) * 9)


def test_a_second_baseline_that_failed_is_tried_once_more_by_each_later_engine(tmp_path: Path) -> None:
    toolchain, told = Compiler("no compiler", "no compiler"), list[int]()
    for _ in range(4):  # engines, of which each times two kernels
        context = open_context(tmp_path, toolchain=cast(Evaluator, toolchain))
        for _ in range(2):
            time_candidate(context, context.candidate(add_candidate(context, speedup=2.0)))
        told.append(sum(isinstance(event, ev.BaselineMeasured) for event in context.record.events))
        context.journal.close()
    assert told == [1, 1, 2, 2]
    assert context.record.baseline is not None
    assert context.record.baseline.result is not None
