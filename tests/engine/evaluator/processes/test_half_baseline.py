"""The baseline of a task in half precision: the faster of both ways, with the outputs that the module itself has."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch

from engine.evaluator.checks.arguments import Arguments
from engine.evaluator.processes import half_baseline
from engine.evaluator.processes.half_baseline import AS_IT_IS, IN_BFLOAT16, UnderAutocast, faster
from engine.evaluator.toolchains.cpu import CpuToolchain
from storage.results.evaluation_results import TimingResult
from storage.results.policy import Policy
from tests.engine.evaluator.processes.probes import candidate, task

A, B = torch.rand(8, 64), torch.rand(64, 8)


def is_autocast() -> bool:
    return torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize(("slow", "name"), [(False, AS_IT_IS), (True, IN_BFLOAT16)], ids=["without", "with autocast"])
def test_the_faster_way_is_the_baseline(monkeypatch: pytest.MonkeyPatch, slow: bool, name: str) -> None:
    now = [0.0]

    def forward(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        now[0] += 2.0 if is_autocast() is not slow else 1.0
        return a @ b

    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    chosen, told = faster(forward, "cpu", [torch.float32], Arguments([A, B]))
    assert told == name
    found = chosen(A, B)
    assert found.dtype is torch.float32
    assert torch.equal(found, A @ B) is not slow, "autocast rounds the operands"


def test_outputs_keep_their_container_and_dtypes() -> None:
    two = UnderAutocast(lambda a, b: (a @ b, (a @ b).argmax(1)), "cpu", [torch.float32, torch.int64])
    found = two(A, B)
    assert isinstance(found, tuple)
    assert [one.dtype for one in found] == [torch.float32, torch.int64]


def test_a_module_that_autocast_does_not_take_is_timed_as_it_is() -> None:
    def forward(a: torch.Tensor) -> torch.Tensor:
        if is_autocast():
            raise RuntimeError("not implemented for 'BFloat16'")
        return a

    assert faster(forward, "cpu", [torch.float32], Arguments([A])) == (forward, AS_IT_IS)


def test_a_gpu_without_bfloat16_is_named_with_what_to_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: False)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Tesla T4")
    assert half_baseline.missing("cpu") == ""
    said = half_baseline.missing("cuda")
    assert said.startswith("bfloat16 needs a GPU that has it (Ampere or newer), and Tesla T4 has not: use")


def test_a_kernel_that_rounds_its_operands_is_timed_in_half_and_its_baseline_is_named(
    cpu: CpuToolchain, tmp_path: Path
) -> None:
    reference = task(
        tmp_path, "a @ b", inputs="torch.rand(N, 96), torch.rand(96, N)", arguments="a, b",
        policy=Policy(precision="half"),
    )  # fmt: skip
    timed = cpu.time(reference, candidate("return ext.multiply(a, b, 8)", arguments="a, b"))
    assert isinstance(timed, TimingResult), timed.message
    assert timed.baseline in (AS_IT_IS, IN_BFLOAT16)
