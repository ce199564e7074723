"""What stands in place of the curve until its first point is there."""

from __future__ import annotations

import re
from pathlib import Path

from pages.parts import preparing
from pages.parts.run import first_kernel
from storage import device_use
from storage.index.queries import StepRow
from storage.results.evaluation_results import BUILT, CORRECT, CompileResult, TimingResult
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run import journal, liveness
from storage.run.settings import StepKind
from tests import samples
from tests.pages.conftest import Open, everything, words
from tests.storage.growth import created

BROKEN = CompileResult(False, 1.0, "no such operator", verdict=Verdict.COMPILE_ERROR)
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
        "explaining": ["done", "done", "active", "waiting", "waiting", "waiting"],
        "repaired": ["done", "done", "done", "active", "waiting", "waiting"],
    }


def test_until_the_first_step_the_stages_tell_what_the_evaluator_does(home: Path, open_page: Open) -> None:
    run = samples.write_run(home / "runs", "early", ending="new")
    lock = liveness.hold(run)
    before = preparing.sign("early")
    with device_use.claimed("limit", "early", device="cpu") as claim:
        told = {}
        for stage, act in {"loading": lambda: None, "waiting": claim.waits, "holding": claim.holds}.items():
            act()
            page = open_page("run", run="early")
            said = everything(page).replace("\\", "")
            states = re.findall(r'"state": ?"(\w+)"', said.partition('"stages":')[2].partition("]")[0])
            told[stage] = preparing.sentence("early"), states[:3], preparing.sign("early")
            assert preparing.sentence("early") in said
    waits = "Waiting for the device, which something else holds"
    assert told == {
        "loading": (preparing.LOADING, ["active", "waiting", "waiting"], "beside"),
        "waiting": (waits, ["done", "active", "waiting"], "waiting"),
        "holding": (preparing.MEASURING, ["done", "active", "waiting"], "holding"),
    }
    assert before == "starting"
    with device_use.claimed("time", "sample", device="cpu") as other:
        other.holds()
        assert preparing.wait(claim.claimed) == "Waiting for the device: something else is timing"
    del lock


def test_headline_caption_and_stage_speak_of_one_kernel(home: Path, open_page: Open) -> None:
    run = samples.write_run(home / "runs", "broken", ending="new")
    lock, book = liveness.hold(run), journal.Journal(run.journal_file)
    for event in (
        ev.StepStarted(1, StepKind.SYNTHESISE, 0, None), created(1, "c001"),
        ev.StepFinished(1, StepKind.SYNTHESISE, 1.0, "created"), ev.StepStarted(2, StepKind.COMPILE, 0, "c001"),
        ev.Compiled(2, "c001", BROKEN, None), ev.StepFinished(2, StepKind.COMPILE, 1.0, "compile_error"),
        ev.StepStarted(3, StepKind.REPAIR, 0, "c001"),
    ):  # fmt: skip
        book.append(event)
    said = everything(open_page("run", run="broken")).replace("\\", "")
    assert "## Kernel 1 failed; the model mends it" in said
    assert "Kernel 1 does not compile: no such operator." in said
    assert "tries again" not in said
    assert "Mend kernel 1" in said
    assert "The model is repairing kernel 1" in said
    for event in (created(3, "c002"), ev.StepFinished(3, StepKind.REPAIR, 1.0, "created")):
        book.append(event)
    said = everything(open_page("run", run="broken"))
    assert "## Kernel 2, in place of kernel 1, which failed" in said
    book.close()
    del lock


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
