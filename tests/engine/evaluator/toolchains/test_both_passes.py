"""Forward and backward as one call: gradients are checked against float64, own kernels compute them, both are timed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.evaluator.checks import structure
from engine.evaluator.checks.gradients import ForwardBackward, Plan
from engine.evaluator.toolchains.cpu import CpuToolchain
from engine.search.steps import briefing
from storage.results.evaluation_results import TimingResult
from storage.results.policy import Policy
from storage.results.vocabulary import Verdict
from tests.engine.evaluator.toolchains import both_passes
from tests.engine.evaluator.toolchains.shapes import as_candidate


@pytest.mark.parametrize(
    ("name", "gradient"),
    [
        ("silu", "The gradient of input 0"),
        ("layer_norm", "The gradient of parameter 'norm.weight'"),
        ("linear", "The gradient of parameter 'fc.weight'"),
    ],
)
def test_right_gradients_pass_and_a_wrong_one_is_named_with_how_far_it_is_off(
    name: str, gradient: str, tmp_path: Path, cpu: CpuToolchain
) -> None:
    task, source = both_passes.task(name, tmp_path), both_passes.kernel(name, "cpu")
    assert cpu.compile(task, source).is_ok
    right = cpu.check(task, source)
    assert right.verdict is Verdict.PASSED, right.message
    wrong = cpu.check(task, both_passes.wrong(source))
    assert wrong.verdict is Verdict.INCORRECT
    assert wrong.message.startswith(f"{gradient}: ")
    assert "All elements are off by one factor: 1.01." in wrong.message
    assert wrong.mismatch is not None


def test_the_limits_of_one_pass_and_of_both_are_kept_apart(tmp_path: Path, cpu: CpuToolchain) -> None:
    both = both_passes.task("silu", tmp_path)
    assert cpu.limit(replace(both, policy=Policy())).min_bytes < cpu.limit(both).min_bytes


def test_both_passes_are_timed_and_the_baseline_says_so(tmp_path: Path, cpu: CpuToolchain) -> None:
    timed = cpu.time(both_passes.task("linear", tmp_path), both_passes.kernel("linear", "cpu"))
    assert isinstance(timed, TimingResult), timed
    assert timed.baseline == "eager, forward and backward"


def test_a_gradient_that_a_kernel_keeps_tells_its_next_forward_nothing() -> None:
    kept: list[torch.Tensor] = []

    class Keeping(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            return x + (kept[-1] if kept else 0)

        @staticmethod
        def backward(ctx: object, *given: torch.Tensor) -> torch.Tensor:
            kept.extend(given)
            return given[0].neg()

    whole = ForwardBackward(
        Keeping.apply, {}, Plan(1, (0,), ("input 0",), False, (), structure.TENSOR, ("the output",), (0,))
    )
    buffer = torch.ones(3)
    outputs = []
    for number in (1.0, 2.0, 3.0):
        outputs.append(float(whole(torch.zeros(3), buffer.fill_(number))[0][0]))
    assert outputs == [0.0, 1.0, 2.0]  # what the call before was given, never its own
    assert len({one.data_ptr() for one in (buffer, *kept)}) == 4
    # The caller compares these with what was given: a kernel may not write into them.
    whole.handed[0].zero_()
    assert kept[-1].tolist() == [0.0] * 3


def test_a_kernel_without_a_backward_is_told_what_to_write(tmp_path: Path, cpu: CpuToolchain) -> None:
    source = both_passes.without_backward(both_passes.kernel("silu", "cpu"))
    checked = cpu.check(both_passes.task("silu", tmp_path), source)
    assert checked.verdict is Verdict.INCORRECT
    assert "the gradient of input 0 is missing: let forward go through a torch.autograd.Function" in checked.message


def test_a_gradient_that_pytorch_computes_is_a_fall_back_unless_the_policy_leaves_it_to_the_library(
    tmp_path: Path, cpu: CpuToolchain
) -> None:
    task, source = both_passes.task("silu", tmp_path), both_passes.by_autograd(both_passes.kernel("silu", "cpu"))
    refused = cpu.check(task, source)
    assert refused.verdict is Verdict.REFUSED
    assert "aten::silu_backward" in refused.message
    left = Policy(backward=True, library_operators=("silu",))
    assert cpu.check(replace(task, policy=left), source).verdict is Verdict.PASSED
    # A layer that stays with PyTorch keeps PyTorch's backward.
    linear = both_passes.task("linear", tmp_path, Policy(backward=True, library_operators=("linear",)))
    own = cpu.check(linear, as_candidate(linear.source))
    assert own.verdict is Verdict.PASSED, own.message


def test_the_prompt_says_that_both_passes_are_asked(tmp_path: Path) -> None:
    task = both_passes.task("silu", tmp_path)
    assert "torch.autograd.Function" in briefing.contract("cpu", task)
    assert "torch.autograd.Function" not in briefing.contract("cpu", replace(task, policy=Policy()))
