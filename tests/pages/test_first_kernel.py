"""What stands in place of the curve until its first point is there."""

from __future__ import annotations

from pathlib import Path

from pages.parts.run import first_kernel
from storage.index.queries import StepRow
from storage.results.evaluation_results import BUILT, CORRECT, TimingResult
from storage.run import events as ev
from storage.run import journal, liveness
from storage.run.settings import StepKind
from tests import samples
from tests.pages.conftest import Open, everything, words
from tests.storage.growth import created

SPOILED = TimingResult((1.0,) * 9, (99.0,) * 9, untrusted="the machine is busy")


def step(seq: int, kind: StepKind, candidate_id: str | None, *, is_in_flight: bool = False) -> StepRow:
    seconds = None if is_in_flight else float(seq)
    return StepRow(seq, seq, kind, 0, candidate_id, 0.0, seconds, None, is_in_flight)


def test_after_a_failed_kernel_the_stages_are_those_of_the_next() -> None:
    failed = [step(2, StepKind.COMPILE, "c001"), step(1, StepKind.SYNTHESISE, None)]
    explaining = [step(3, StepKind.DIAGNOSE, "c001", is_in_flight=True), *failed]
    repaired = [step(5, StepKind.COMPILE, "c002", is_in_flight=True), step(4, StepKind.REPAIR, "c001"),
                step(3, StepKind.DIAGNOSE, "c001"), *failed]  # fmt: skip
    shown = {
        name: [stage["state"] for stage in first_kernel.stages(first_kernel.steps_after(steps, "c001"), True, None)]
        for name, steps in (("explaining", explaining), ("repaired", repaired))
    }
    assert shown == {
        "explaining": ["done", "active", "waiting", "waiting", "waiting"],
        "repaired": ["done", "done", "active", "waiting", "waiting"],
    }


def test_after_a_timing_that_decides_nothing_the_page_says_so_and_the_stages_are_those_of_the_next(
    home: Path, open_page: Open
) -> None:
    run = samples.write_run(home / "runs", "busy", ending="new")
    lock, book = liveness.hold(run), journal.Journal(run.journal_file)
    for event in (
        created(1, "c001"), ev.Compiled(1, "c001", BUILT, None), ev.Checked(1, "c001", CORRECT),
        ev.StepStarted(2, StepKind.TIME, 0, "c001"), ev.Timed(2, "c001", SPOILED),
        ev.StepFinished(2, StepKind.TIME, 1.0, "passed"), ev.StepStarted(3, StepKind.OPTIMISE, 1, None),
    ):  # fmt: skip
        book.append(event)
    page = open_page("run", run="busy")
    said = words(page).replace("\\", "")
    assert "The first timed kernel" in said
    assert "Kernel 1 is correct, not timed: the machine is busy, so nothing is decided" in said
    stages = everything(page).replace("\\", "").partition('"stages":')[2].partition("]")[0]
    assert [stages.count(state) for state in ("active", "waiting")] == [1, 4]
    book.close()
    del lock
