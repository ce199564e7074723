"""A timing that a busy machine spoiled: what the index and the pages tell of the kernel."""

from __future__ import annotations

from pathlib import Path

from pages.parts.kernel import trust_tab
from pages.parts.run import result_panel
from pages.parts.status import step_sentences
from storage.index import queries
from storage.index.database import Database
from storage.results.evaluation_results import BUILT, CORRECT, TimingResult
from storage.run import events as ev
from tests.storage.growth import created, grow

SPOILED = TimingResult((1.0,) * 9, (99.0,) * 9, untrusted="the machine is busy")
GOOD = TimingResult((1.0,) * 9, (2.5,) * 9)


def test_a_kernel_whose_timing_decides_nothing_is_correct_and_not_timed(db: Database, root: Path) -> None:
    first: list[ev.Event] = [created(1, "c001"), ev.Compiled(1, "c001", BUILT, None), ev.Checked(1, "c001", CORRECT)]
    time = ev.StepStarted(2, "time", 0, "c001")
    grow(db, root, *first, time, ev.Timed(2, "c001", SPOILED), ev.StepFinished(2, "time", 1.0, "passed"))
    run, evaluation = queries.run(db, "sample"), queries.evaluation(db, "sample", "c001")
    assert run is not None
    assert evaluation is not None
    assert (run.passed, run.best_speedup) == (1, None)
    assert (evaluation.verdict, evaluation.speedup, evaluation.untrusted) == ("passed", None, "the machine is busy")
    assert trust_tab.timing(evaluation) == [
        ("not timed", "the machine is busy: nothing is decided by what was measured")
    ]
    step = next(row for row in queries.steps(db, "sample") if row.step == 2)
    assert step_sentences.sentence(step).endswith("is correct, not timed: the machine is busy")
    assert result_panel.sentence(run) == "1 correct kernel, none with a timing that counts."
    again = ev.StepStarted(3, "time", 0, "c001")
    grow(db, root, again, ev.Timed(3, "c001", GOOD), ev.StepFinished(3, "time", 1.0, "passed"))
    run, evaluation = queries.run(db, "sample"), queries.evaluation(db, "sample", "c001")
    assert run is not None
    assert evaluation is not None
    assert (run.best_speedup, evaluation.speedup, evaluation.untrusted) == (2.5, 2.5, "")
