"""What is told of a kernel's deployment on a processor: memory of a call as it is, and why capture is not tried."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.evaluator import tasks
from engine.evaluator.processes import deploying
from engine.evaluator.toolchains.cpu import CpuToolchain
from engine.evaluator.toolchains.evaluating import evaluate
from storage.results.deployment import UNCAPTURED, CallMemory, Deployment, Trait
from tests.engine.evaluator.toolchains import kernels

SIZES = {"batch_size": 64, "dim": 4096}
BYTES = 4 * 64 * 4096
TASK = tasks.find("swish").task("cpu", SIZES)
CALL = "return ext.swish(x)"
IN_CPP = "  auto y = torch::empty_like(x);\n"


def memory_of(cpu: CpuToolchain, source: str) -> CallMemory:
    assert cpu.compile(TASK, source).is_ok
    seen = cpu.deploy(TASK, source)
    assert seen.memory is not None, seen.unseen
    return seen.memory


def test_an_honest_kernel_takes_its_output_alone_and_no_graph_is_tried(cpu: CpuToolchain) -> None:
    seen = cpu.deploy(TASK, kernels.SWISH)
    assert (seen.capture, seen.why, seen.stream) == (Trait.NOT_TRIED, UNCAPTURED, Trait.NOT_TRIED)
    assert seen.memory == CallMemory(0, 0, 0, 0, 0)
    assert seen.timeline is not None


def test_scratch_is_counted_with_the_most_that_is_held_at_a_time(cpu: CpuToolchain) -> None:
    both = "a = torch.empty_like(x); b = torch.empty_like(x); del b; c = torch.empty_like(x)"
    source = kernels.forward(both, CALL)
    assert memory_of(cpu, source) == CallMemory(3 * BYTES, 3, 2 * BYTES, 0, 0)


def test_scratch_of_the_c_plus_plus_side_is_counted(cpu: CpuToolchain) -> None:
    source = kernels.SWISH.replace(IN_CPP, f"{IN_CPP}  auto scratch = torch::empty({{2, x.numel()}}, x.options());\n")
    assert memory_of(cpu, source) == CallMemory(2 * BYTES, 1, 2 * BYTES, 0, 0)


def test_what_is_kept_from_call_to_call_is_told_apart_from_what_each_call_adds(cpu: CpuToolchain) -> None:
    kept = memory_of(cpu, kernels.forward("self.held = getattr(self, 'held', torch.empty_like(x))", CALL))
    assert kept.kept_bytes is not None
    assert BYTES <= kept.kept_bytes < BYTES + BYTES // 10
    assert kept.grown_bytes == 0
    grown = memory_of(cpu, kernels.SWISH.replace(IN_CPP, f"{IN_CPP}  float* volatile lost = new float[100000];\n"))
    assert (grown.taken_bytes, grown.allocations) == (0, 0), "of PyTorch's allocator"
    assert 400_000 <= grown.grown_bytes < 440_000


def test_a_kernel_that_fails_is_told_and_raises_nothing(cpu: CpuToolchain) -> None:
    """It was right when it was judged; what it does now changes no verdict."""
    failing = cpu.deploy(TASK, kernels.forward("raise ValueError('not today')"))
    assert failing.memory is None
    assert "ValueError: not today" in failing.unseen
    leaving = cpu.deploy(TASK, kernels.forward("import os; os._exit(3)"))
    assert "status 3" in leaving.unseen
    unbuilt = cpu.deploy(TASK, kernels.SWISH.replace("auto y", "auto"))
    assert unbuilt.memory is None
    assert unbuilt.unseen


def test_both_passes_are_not_looked_at_and_said_to_be_so(cpu: CpuToolchain) -> None:
    task = replace(TASK, policy=replace(TASK.policy, backward=True, library_operators=("*",)))
    seen = cpu.deploy(task, "import torch\nModelNew = torch.nn.SiLU\n")
    assert seen == Deployment(
        Trait.NOT_TRIED, deploying.BOTH_PASSES, unseen=deploying.BOTH_PASSES, timeline=seen.timeline
    )


def test_an_evaluation_looks_where_it_is_asked_to_and_the_kernel_is_right(cpu: CpuToolchain) -> None:
    asked = evaluate(cpu, TASK, kernels.SWISH, deployment=True)
    assert asked["deployment"]["memory"]["allocations"] == 0
    assert evaluate(cpu, TASK, kernels.SWISH.replace("1.0f +", "2.0f +"), deployment=True)["deployment"] is None


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("CUDA error: operation not permitted when stream is capturing\nSearch for", deploying.NOT_PERMITTED),
        ("CUDA error: operation failed due to a previous error during capture", deploying.NOT_PERMITTED),
        ("operation would make the legacy stream depend on a capturing blocking stream", "legacy default stream"),
        ("CUDA error: capturing stream has unjoined work", "does not join"),
        ("an exception of its own", ""),
    ],
)
def test_what_the_driver_says_of_a_capture_is_told_in_plain_words(said: str, reason: str) -> None:
    told = deploying.explained(said)
    assert reason in told
    assert bool(reason) == bool(told)
