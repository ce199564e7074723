"""Candidates that bend time, one by one, and honest ones that must not be taken for them. Real workers throughout."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.errors import ToolchainError
from engine.evaluator import tasks
from engine.evaluator.checks.candidate_failures import TimedCallFailed
from engine.evaluator.machine import lease
from engine.evaluator.processes import timing
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains import cpu as cpu_toolchain
from engine.evaluator.toolchains.cpu import CpuToolchain
from storage.results.check_records import CheckOutcome, CheckRecord, Group
from storage.results.evaluation_results import CheckResult, TimingResult
from storage.results.vocabulary import Verdict
from tests.engine.evaluator.processes.threaded import forward
from tests.engine.evaluator.toolchains import kernels
from tests.engine.evaluator.toolchains.fixtures import free, is_candidate_halted

HONEST = forward("return ext.swish(x)")
TIMING_CHECKS = {
    "clock",
    "outputs of timed calls",
    "nothing finishes later",
    "nothing remembered",
    "fresh inputs",
    "order",
    "idle threads",
    "noise",
    "own computation",
    "processor time",
    "machine",
    "re-measured",
}
PATCHED_GO = """
from engine.evaluator.processes.model_caller import ModelCaller
def go(self, known=ModelCaller.go, kept=[]):
    if len(kept) < 2: kept.append(known(self))
    return {**kept[-1], "ns": 5000}
ModelCaller.go = go
"""
WORK_IN_LOAD = """
from engine.evaluator.processes.model_caller import ModelCaller
import torch
def load(self, leaves, poison, slots, is_strided, known=ModelCaller.load):
    answer = known(self, leaves, poison, slots, is_strided)
    with torch.no_grad(): self._early = ext.swish(self._buffers[0])
    model, early = self._model, self._early
    self._model_kept = model
    self._model = lambda x: early
    return answer
ModelCaller.load = load
"""
STEADY_CLOCK = """
import itertools, time
import engine.evaluator.processes.model_caller as model_caller
ticks = itertools.count(0, 1000)
model_caller._clock = lambda: next(ticks)
"""
TIME_MODULE = """
import time
real = time.perf_counter_ns
time.perf_counter_ns = time.monotonic_ns = time.time_ns = lambda: 0
time.perf_counter = time.monotonic = time.time = lambda: 0.0
"""
SCALED = """
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    kept = None

    def forward(self, a, b):
        if ModelNew.kept is None or a.shape != ModelNew.kept[0].shape:
            ModelNew.kept = (a.clone(), b.clone(), a @ b)
        x, y, z = ModelNew.kept
        first, second = a / x, b / y
        if first.std() < 1e-3 and second.std() < 1e-3:
            return z * (first.mean() * second.mean())
        ModelNew.kept = (a.clone(), b.clone(), a @ b)
        return %s
"""


@pytest.fixture(scope="module")
def task() -> Task:
    """About two milliseconds a call: long enough for the clocks to be told apart."""
    return tasks.find("swish").task("cpu", {"batch_size": 64, "dim": 8192})


def refused(result: TimingResult | CheckResult, verdict: Verdict, said: str) -> CheckRecord:
    assert isinstance(result, CheckResult), result
    assert result.verdict is verdict, result.message
    assert said in result.message
    (broken,) = [check_record for check_record in result.proofs if check_record.group is Group.TIMING]
    assert (broken.group, broken.standing) == (Group.TIMING, CheckOutcome.BROKEN)
    return broken


def test_every_check_of_an_honest_timing_is_reported_with_figures(cpu: CpuToolchain, task: Task) -> None:
    result = cpu.time(task, HONEST)
    assert isinstance(result, TimingResult), result.message
    found = {check_record.check: check_record for check_record in result.proofs}
    assert found.keys() == TIMING_CHECKS
    assert all(check_record.group is Group.TIMING and check_record.detail for check_record in result.proofs)
    assert all(check_record.standing is not CheckOutcome.BROKEN for check_record in result.proofs)
    assert found["re-measured"].standing is CheckOutcome.ABSENT
    assert "read from the stopped process" in found["nothing finishes later"].detail
    assert "secret mix" in found["fresh inputs"].detail


def test_what_a_kernel_has_started_stands_still_while_its_timing_waits_for_the_device(
    cpu: CpuToolchain, task: Task
) -> None:
    with ThreadPoolExecutor(1) as beside, lease.hold(*cpu.lease_files):
        timed = beside.submit(cpu.time, task, HONEST)
        deadline = time.monotonic() + 60
        while not is_candidate_halted():
            assert time.monotonic() < deadline, "it runs on"
            assert not timed.done()
            time.sleep(0.01)
    assert isinstance(timed.result(), TimingResult)


def test_a_timing_that_cannot_have_its_turn_leaves_nothing_to_the_next_request(
    cpu: CpuToolchain, task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as unusable:
        unusable.setattr(CpuToolchain, "lease_files", (tmp_path,))
        with pytest.raises(ToolchainError, match=str(tmp_path)):
            cpu.time(task, HONEST)
    assert cpu.check(task, forward("return x")).verdict is Verdict.INCORRECT


@pytest.mark.parametrize(
    "lines",
    [
        "return ext.joined(x)",
        "return ext.openmp(x)",
        "return ext.pooled(x)",
        "return torch.nn.functional.pad(ext.swish(x), (0, 7, 3, 0))[3:, :-7]",
        "return ext.swish(x).t().contiguous().t()",
    ],
)
def test_honest_threads_and_output_layouts_are_timed(cpu: CpuToolchain, task: Task, lines: str) -> None:
    result = cpu.time(task, forward(lines))
    assert isinstance(result, TimingResult), result.message


@pytest.mark.parametrize("microseconds", [1000, 20_000])
def test_a_thread_that_fills_the_output_after_the_return_is_caught(
    cpu: CpuToolchain, task: Task, microseconds: int
) -> None:
    result = cpu.time(task, forward(f"return ext.later(x, {microseconds})"))
    broken = refused(result, Verdict.INCORRECT, "timed call")
    assert broken.check == "outputs of timed calls"


def test_a_worker_clock_that_stands_nearly_still_is_refused_with_both_figures(cpu: CpuToolchain, task: Task) -> None:
    # Long beside what the clocks of a busy machine differ by anyway: a shorter call may pass, at its true speed.
    longer = forward("time.sleep(0.1)", "return ext.swish(x)", before=STEADY_CLOCK)
    broken = refused(cpu.time(task, longer), Verdict.REFUSED, "0.001 ms")
    assert broken.check == "clock"
    assert "the evaluator's" in broken.detail


def test_a_patched_time_module_changes_no_figure(cpu: CpuToolchain, task: Task) -> None:
    result = cpu.time(task, forward("return ext.swish(x)", before=TIME_MODULE))
    assert isinstance(result, TimingResult), result.message
    assert result.latency_ms > 0.1


def test_a_call_that_answers_without_calling_is_caught_by_its_outputs(cpu: CpuToolchain, task: Task) -> None:
    refused(cpu.time(task, forward("return ext.swish(x)", before=PATCHED_GO)), Verdict.INCORRECT, "timed call")


def test_work_done_before_the_clock_runs_is_work_on_other_contents(cpu: CpuToolchain, task: Task) -> None:
    refused(cpu.time(task, forward("return ext.swish(x)", before=WORK_IN_LOAD)), Verdict.INCORRECT, "timed call")


def test_a_cached_result_scaled_to_the_inputs_is_caught(cpu: CpuToolchain) -> None:
    task = free(tasks.find("square_matmul").task("cpu", {"N": 256}))
    honest = cpu.time(task, SCALED % "ModelNew.kept[2].clone()")
    assert isinstance(honest, TimingResult), honest.message
    refused(cpu.time(task, SCALED % "z * (first.mean() * second.mean())"), Verdict.INCORRECT, "timed call")


@pytest.mark.parametrize(
    "source",
    [
        forward("if not hasattr(self, 'lit'): self.lit = ext.burn() or True", "return ext.swish(x)"),
        forward("return ext.swish(x)", before="open('burn', 'w').close()\n"),
    ],
    ids=["from forward", "from a C++ constructor"],
)
def test_a_thread_that_burns_processor_time_between_calls_is_refused(
    cpu: CpuToolchain, task: Task, source: str
) -> None:
    broken = refused(cpu.time(task, source), Verdict.REFUSED, "threads left running")
    assert broken.check == "idle threads"


@pytest.mark.parametrize("orphan", ["", "if os.fork(): os._exit(0)"])
def test_a_process_left_running_after_a_call_is_refused(cpu: CpuToolchain, task: Task, orphan: str) -> None:
    lines = ["import os, time", "if not hasattr(self, 'child'):", "    self.child = os.fork()"]
    lines += ["    if not self.child:", f"        {orphan or 'pass'}", "        time.sleep(60)", "return ext.swish(x)"]
    refused(cpu.time(task, forward(*lines)), Verdict.REFUSED, "processes left running")


def test_an_output_buffer_used_again_in_timed_calls_only_is_caught(cpu: CpuToolchain, task: Task) -> None:
    source = forward(
        "self.n = getattr(self, 'n', 0) + 1",
        "y = ext.swish(x)",
        "self.y = y if self.n < 9 else self.y.copy_(y)",
        "return self.y",
    )
    refused(cpu.time(task, source), Verdict.INCORRECT, "earlier call")


def test_a_tensor_that_is_computed_when_looked_at_is_no_output(cpu: CpuToolchain, task: Task) -> None:
    source = forward(
        "class Lazy(torch.Tensor): pass",
        "self.n = getattr(self, 'n', 0) + 1",
        "return ext.swish(x) if self.n < 6 else ext.swish(x).as_subclass(Lazy)",
    )
    refused(cpu.time(task, source), Verdict.INCORRECT, "Lazy")


def test_a_speed_up_beyond_the_policy_is_measured_again_in_a_fresh_process(cpu: CpuToolchain) -> None:
    task = tasks.find("swish").task("cpu", {"batch_size": 16, "dim": 4096})
    strict = replace(task, policy=replace(task.policy, suspicious_speedup=1e-6))
    result = cpu.time(strict, kernels.SWISH)
    assert isinstance(result, TimingResult), result.message
    again = result.proofs[-1]
    assert again.check == "re-measured"
    assert again.standing in (CheckOutcome.HELD, CheckOutcome.FLAGGED)
    assert "first" in again.detail
    assert "then" in again.detail


def test_a_limit_measured_on_a_busy_machine_is_measured_again_before_a_kernel_is_suspected(
    cpu: CpuToolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_toolchain, "cache_folder", lambda: tmp_path)
    task = tasks.find("swish").task("cpu", {"batch_size": 16, "dim": 4104})
    known = cpu.limit(task)
    (file,) = tmp_path.glob("machine-*.json")
    seen = json.loads(file.read_text())
    slow = {size: rate / 1e4 for size, rate in seen["copy_gb_s"].items()}
    file.write_text(json.dumps(seen | {"copy_gb_s": slow, "others_share": 0.0}))
    assert cpu.limit(task).limit_ms > 1e3 * known.limit_ms, "ten minutes are not over, and the machine was quiet"
    file.write_text(json.dumps(seen | {"copy_gb_s": slow, "others_share": 0.9}))
    result = cpu.time(task, kernels.SWISH)
    assert isinstance(result, TimingResult), result.message
    assert (result.proofs[-1].check, result.proofs[-1].standing) == ("re-measured", CheckOutcome.ABSENT)


@pytest.mark.parametrize(("beside", "is_refused"), [((0.36, 0.2), False), ((0.36, 0.36), True)])
def test_a_device_that_is_slow_for_a_moment_is_not_taken_for_work_that_goes_on(
    monkeypatch: pytest.MonkeyPatch, beside: tuple[float, float], is_refused: bool
) -> None:
    ended: list[str] = []
    candidate = SimpleNamespace(end=lambda: ended.append("candidate"))
    copies = iter((0.9, *beside, 0.2))  # the first ones warm up, the last ones come after the candidate's end
    monkeypatch.setattr(timing, "_copies_ms", lambda *tensors: next(copies))
    workers: Any = SimpleNamespace(device="cpu", candidate=candidate)
    with pytest.raises(TimedCallFailed, match="copies take 0.36 ms") if is_refused else nullcontext():
        assert "0.2 ms beside" in timing.refuse_busy_device(workers)
    assert ended == ["candidate"]
