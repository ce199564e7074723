"""Remembering results: free the second time, and never across a change that matters."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from engine.evaluator.machine import lease
from engine.evaluator.request import (
    Baseline,
    Check,
    Compile,
    CompileAll,
    Evaluator,
    Limit,
    Profile,
    Request,
    Result,
    Time,
)
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.cached import CachedToolchain
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.hardware_limit import HardwareLimit
from storage.results.policy import Policy, Weights
from storage.results.profile_results import ProfileResult
from storage.results.timeline import Timeline
from storage.results.vocabulary import Verdict

TASK = Task("t", "source of the task", {})


@dataclass
class Counting(Evaluator):
    """Only counts how often it is asked."""

    name: str = "counting"
    machine: str = "machine 1"
    verdict: Verdict = Verdict.PASSED
    message: str = "m"
    asked: list[str] = field(default_factory=list)

    @property
    def fingerprint(self) -> str:
        return self.machine

    @property
    def lease_files(self) -> lease.Files:
        return ()

    def evaluate(self, request: Request[Result]) -> Result:
        self.asked += [request.act] * (len(request.sources) or 1)
        return cast(Result, self._answer(request))

    def _answer(self, request: Request[Any]) -> Any:
        match request:
            case Compile():
                is_ok = self.verdict is Verdict.PASSED
                return CompileResult(is_ok, 1.5, self.message, verdict=self.verdict)
            case CompileAll():
                return [CompileResult(True, 1.5) for _ in request.candidates]
            case Check():
                return CheckResult(
                    self.verdict, 0.5, max_error=float("inf"), message=self.message, timeline=Timeline(0.5)
                )
            case Time():
                return TimingResult((1.0, 2.0), (3.0, 4.0))
            case Baseline():
                return TimingResult((2.0, 2.0), (3.0, 4.0))
            case Profile():
                evidence = {"disturbed": "by something"} if request.source == "disturbed" else {}
                return ProfileResult("h", (), "memory", "s", evidence=evidence)
            case Limit():
                return HardwareLimit("d", 1.0, 1.0, 1, 1)
        raise AssertionError(request)

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
    assert [cached.baseline(TASK).speedup for _ in range(2)] == [1.75, 1.75]
    assert inner.asked[4:] == ["baseline"]
    assert second[1].evidence["cached"] == "yes"
    assert second[1].max_error == float("inf")
    assert second[2].evidence["cached"] == "yes"
    assert second[3] == first[3]
    assert "cached" not in cast(TimingResult, cached.time_again(TASK, "k")).evidence
    assert inner.asked[5:] == ["time_again"]
    assert first[1].timeline is not None
    assert second[1].timeline is None, "nothing was done"


def test_another_source_task_or_machine_is_judged_anew(tmp_path: Path) -> None:
    inner = Counting()
    cached = CachedToolchain(inner, tmp_path)
    cached.check(TASK, "k")
    cached.check(TASK, "other")
    cached.check(Task("t", "another task", {}), "k")
    inner.machine = "machine 2"
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


def test_a_module_that_is_not_found_is_looked_for_again(tmp_path: Path) -> None:
    inner = Counting(verdict=Verdict.RUNTIME_ERROR, message="line 1: ModuleNotFoundError: No module named 'timm'")
    cached = CachedToolchain(inner, tmp_path)
    for _ in range(2):
        cached.compile(TASK, "k")
        cached.check(TASK, "k")
    assert inner.asked == ["compile", "check"] * 2
    inner.message = "line 1: NameError: name 'timm' is not defined"
    for _ in range(2):
        cached.compile(TASK, "k")
    assert inner.asked[4:] == ["compile"]


def test_a_disturbed_profile_is_asked_again(tmp_path: Path) -> None:
    inner = Counting()
    cached = CachedToolchain(inner, tmp_path)
    for _ in range(2):
        cached.profile(TASK, "disturbed")
    assert inner.asked == ["profile"] * 2
