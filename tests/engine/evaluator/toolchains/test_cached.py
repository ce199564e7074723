"""Remembering results: free the second time, and never across a change that matters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from engine.evaluator.tasks import Task
from engine.evaluator.toolchains import CompiledStart
from engine.evaluator.toolchains.cached import CachedToolchain
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.examination import Examination, Standing
from storage.results.hardware_limit import HardwareLimit
from storage.results.policy import Policy, Weights
from storage.results.profile_results import ProfileResult
from storage.results.timeline import Timeline
from storage.results.vocabulary import Verdict

TASK = Task("t", "source of the task", {})


@dataclass
class Counting:
    """A toolchain that only counts how often it is asked."""

    name: str = "counting"
    fingerprint: str = "machine 1"
    lease_files: tuple[Path, ...] = ()
    verdict: Verdict = Verdict.PASSED
    asked: list[str] = field(default_factory=list)

    def compiled_baseline(self, task: Task) -> TimingResult:
        self.asked.append("compiled baseline")
        return TimingResult((2.0, 2.0), (3.0, 4.0))

    def examine(self, task: Task) -> Examination:
        return Examination(Standing.DECIDED)

    def examine_confined(self, task: Task) -> Examination:
        return self.examine(task)

    def limit(self, task: Task) -> HardwareLimit:
        return HardwareLimit("d", 1.0, 1.0, 1, 1)

    def compile(self, task: Task, source: str) -> CompileResult:
        self.asked.append("compile")
        return CompileResult(True, 1.5)

    def compile_all(self, task: Task, sources: Sequence[str]) -> list[CompileResult]:
        return [self.compile(task, one) for one in sources]

    def check(self, task: Task, source: str) -> CheckResult:
        self.asked.append("check")
        return CheckResult(self.verdict, 0.5, max_error=float("inf"), message="m", timeline=Timeline(0.5))

    def time(self, task: Task, source: str) -> TimingResult | CheckResult:
        self.asked.append("time")
        return TimingResult((1.0, 2.0), (3.0, 4.0))

    def time_briefly(self, task: Task, source: str) -> TimingResult | CheckResult:
        return self.time(task, source)

    def compiled_start(self, task: Task) -> CompiledStart:
        return CompiledStart("void fused();")

    def compiler_source(self, task: Task) -> str:
        return "void kernel();"

    def profile(self, task: Task, source: str, timed: TimingResult | None = None) -> ProfileResult:
        self.asked.append("profile")
        evidence = {"disturbed": "by something"} if source == "disturbed" else {}
        return ProfileResult("h", (), "memory", "s", evidence=evidence)

    def close(self) -> None:
        self.asked.append("close")


def test_identical_sources_are_judged_once_and_the_second_answer_says_so(tmp_path: Path) -> None:
    inner = Counting()
    cached = CachedToolchain(inner, tmp_path)
    first = (cached.compile(TASK, "k"), cached.check(TASK, "k"), cached.time(TASK, "k"), cached.profile(TASK, "k"))
    second = (cached.compile(TASK, "k"), cached.check(TASK, "k"), cached.time(TASK, "k"), cached.profile(TASK, "k"))
    assert inner.asked == ["compile", "check", "time", "profile"]
    assert not first[0].is_cached
    assert second[0].is_cached
    assert [cached.compiled_baseline(TASK).speedup for _ in range(2)] == [1.75, 1.75]
    assert inner.asked[4:] == ["compiled baseline"]
    assert second[1].evidence["cached"] == "yes"
    assert second[1].max_error == float("inf")
    assert second[2].evidence["cached"] == "yes"
    assert second[3] == first[3]
    assert first[1].timeline is not None
    assert second[1].timeline is None, "nothing was done"


def test_another_source_task_or_machine_is_judged_anew(tmp_path: Path) -> None:
    inner = Counting()
    cached = CachedToolchain(inner, tmp_path)
    cached.check(TASK, "k")
    cached.check(TASK, "other")
    cached.check(Task("t", "another task", {}), "k")
    inner.fingerprint = "machine 2"
    cached.check(TASK, "k")
    assert inner.asked == ["check"] * 4


def test_other_rules_or_another_choice_of_what_is_tried_is_judged_anew(tmp_path: Path) -> None:
    inner = Counting()
    cached = CachedToolchain(inner, tmp_path)
    policies = [
        Policy(),
        Policy(rules=1),
        Policy(weights=Weights.FIXED),
        Policy(mode="eval"),
        Policy(secret_sizes=True),
    ]
    for policy in [*policies, *policies]:
        cached.check(replace(TASK, policy=policy), "k")
        cached.time(replace(TASK, policy=policy), "k")
    assert inner.asked == ["check", "time"] * len(policies)


def test_what_a_task_imports_is_judged_anew_when_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    (tmp_path / "modules" / "ournet").mkdir(parents=True)
    block = tmp_path / "modules" / "ournet" / "block.py"
    inner = Counting()
    cached = CachedToolchain(inner, tmp_path / "cache")
    task = Task("t", "from ournet.block import Block\n", {})
    for text, asked in (("FACTOR = 2\n", 1), ("FACTOR = 2\n", 1), ("FACTOR = 3\n", 2), ("FACTOR = 2\n", 2)):
        block.write_text(text)
        cached.check(task, "k")
        assert len(inner.asked) == asked


def test_a_timeout_is_asked_again(tmp_path: Path) -> None:
    inner = Counting(verdict=Verdict.TIMEOUT)
    cached = CachedToolchain(inner, tmp_path)
    cached.check(TASK, "k")
    assert cached.check(TASK, "k").evidence == {}
    assert inner.asked == ["check", "check"]


def test_a_disturbed_profile_is_asked_again(tmp_path: Path) -> None:
    inner = Counting()
    cached = CachedToolchain(inner, tmp_path)
    for _ in range(2):
        cached.profile(TASK, "disturbed")
    assert inner.asked == ["profile"] * 2
