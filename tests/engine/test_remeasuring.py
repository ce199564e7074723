"""Two kernels timed again: what may be asked, what is told meanwhile, and what a real pair on this machine gives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine import remeasuring, supervisor
from engine.errors import EngineError
from engine.evaluator.tasks import Task
from engine.remeasuring import Measuring
from pages.parts.compare.compare_kernels import verdict
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.vocabulary import Verdict
from storage.run import remeasurements
from storage.run.remeasurements import KernelName, Ratio, RemeasureProgress, RemeasureState, Round
from tests.samples import write_run


class Turns:
    """A toolchain that writes down what it times; the first kernel is `gain` times as fast as the second."""

    def __init__(self, gain: float = 1.2, failing: str = "") -> None:
        self.gain, self.failing = gain, failing
        self.timed: list[str] = []
        self.lease_files: tuple[Path, ...] = ()
        self.first = ""

    def compile(self, task: Task, source: str) -> CompileResult:
        return CompileResult(True, 0.1)

    def check(self, task: Task, source: str) -> CheckResult:
        self.first = self.first or source
        verdict = Verdict.INCORRECT if self.failing == "check" else Verdict.PASSED
        return CheckResult(verdict, 0.1, message="element 3 is wrong" if self.failing else "")

    def time(self, task: Task, source: str) -> TimingResult | CheckResult:
        self.timed.append(source)
        if self.failing == "time" and len(self.timed) > 3:
            return CheckResult(Verdict.RUNTIME_ERROR, 0.1, message="it crashed")
        drift = 1.0 + len(self.timed) / 100  # the whole machine grows slower; the baseline with it
        own = 1.0 if source == self.first else self.gain
        return TimingResult((own * drift,) * 5, (2.0 * drift,) * 5)


def measured(home: Path, toolchain: Turns) -> tuple[RemeasureProgress, list[RemeasureProgress]]:
    write_run(home / "runs", "old")
    request = remeasuring.request_of(("old", "c007"), ("old", "5"))
    told: list[RemeasureProgress] = []
    toolchain.lease_files = (home / "lease",)
    ended = Measuring(request, toolchain, told.append).run()  # type: ignore[arg-type]
    return ended, told


def test_the_two_take_turns_and_the_baseline_cancels_drift(home: Path) -> None:
    toolchain = Turns()
    ended, told = measured(home, toolchain)
    assert ended.state is RemeasureState.DONE
    first, second = toolchain.first, next(s for s in toolchain.timed if s != toolchain.first)
    assert toolchain.timed == [first, second, second, first] * (remeasurements.ROUNDS // 2)
    assert ended.ratio is not None
    assert (ended.ratio.value, ended.ratio.low, ended.ratio.high) == pytest.approx((1.2, 1.2, 1.2))
    assert ended.ratio.is_difference
    states = [progress.state for progress in told]
    assert states[:2] == [RemeasureState.BUILDING] * 2
    assert states[2:4] == [RemeasureState.WAITING, RemeasureState.MEASURING]


@pytest.mark.parametrize(("failing", "word"), [("check", "not correct here"), ("time", "failed while it was timed")])
def test_a_kernel_that_does_not_hold_here_ends_it_with_its_reason(home: Path, failing: str, word: str) -> None:
    ended, _ = measured(home, Turns(failing=failing))
    assert ended.state is RemeasureState.FAILED
    assert word in ended.message


def test_no_difference_beyond_the_noise_is_told_as_none() -> None:
    rounds = tuple(Round(1.0 + d, 1.0, 1.0, 1.0) for d in (-0.02, -0.01, 0.0, 0.01, 0.02, 0.03))
    ratio = RemeasureProgress(RemeasureState.DONE, 0.0, rounds).ratio
    assert ratio is not None
    assert (ratio.low, ratio.high, ratio.is_sound) == (0.98, 1.03, True)
    assert not ratio.is_difference


def test_only_two_correct_kernels_of_one_task_can_be_asked_for(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(home / "runs", "old")
    write_run(home / "runs", "other", seed=1)
    larger = write_run(home / "runs", "larger")
    settings = larger.read_settings()
    larger.settings_file.unlink()
    larger.write_settings(replace(settings, task_source=f"{settings.task_source}\nN = 8\n"))
    for first, second, word in (
        (("old", "1"), ("old", "c001"), "are the same"),
        (("old", "1"), ("old", "99"), "no kernel"),
        (("old", "1"), ("old", "2"), "no correct timing"),
        (("old", "1"), ("other", "1"), "same toolchain"),
        (("old", "1"), ("larger", "1"), "a different size or version of the task"),
    ):
        with pytest.raises(EngineError, match=word):
            remeasuring.request_of(first, second)
    with pytest.raises(FileNotFoundError):
        remeasuring.request_of(("old", "1"), ("../../etc", "1"))
    monkeypatch.setenv("TILEWRIGHT_READ_ONLY", "1")
    with pytest.raises(EngineError, match="read-only"):
        supervisor.remeasure(("old", "1"), ("old", "5"))
    assert not (home / "remeasurements").exists()


def test_one_whose_process_is_gone_is_lost(home: Path) -> None:
    write_run(home / "runs", "old")
    request = remeasuring.request_of(("old", "1"), ("old", "5"))
    folder = remeasurements.create(request)
    assert remeasurements.read(request.remeasure_id).progress.state is RemeasureState.STARTING
    remeasurements.tell(folder, RemeasureProgress(RemeasureState.MEASURING, 1.0))
    assert next(remeasurements.newest()).progress.state is RemeasureState.LOST
    with pytest.raises(FileNotFoundError):
        remeasurements.read("../runs/old")


def test_too_few_rounds_are_told_as_such() -> None:
    ratio = RemeasureProgress(RemeasureState.DONE, 0.0, (Round(1.2, 1.0, 1.0, 1.0),)).ratio
    assert ratio is not None
    first, second = KernelName("r", "c2", 2, 1.2, 0.01), KernelName("r", "c1", 1, 1.0, 0.01)
    names = "kernel 2", "kernel 1"
    assert not ratio.is_sound
    assert "too few to rule out noise" in verdict(first, second, ratio, names)
    sound = Ratio(1.12, 1.10, 1.14, 6)
    assert verdict(first, second, sound, names) == (
        "Kernel 2 is 1.12× (1.10 to 1.14×) as fast as kernel 1; in their runs it was 1.20×."
    )
    assert verdict(first, second, Ratio(1.01, 0.98, 1.03, 6), names).startswith("No significant difference")
