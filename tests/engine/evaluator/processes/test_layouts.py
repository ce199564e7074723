"""Inputs as `get_inputs` lays them out, nested arguments and results, ties, and sizes that nobody is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.evaluator.checks import findings
from engine.evaluator.toolchains.cpu import CpuToolchain
from storage.results.evaluation_results import TimingResult
from storage.results.hardware_limit import LaidOut
from storage.results.policy import Policy, Strides
from storage.results.vocabulary import Verdict
from tests.engine.evaluator.processes.references import kernel, reference
from tests.engine.evaluator.processes.test_checking import check_of

FLAT = "flat = torch.as_strided(x, (x.numel(),), (1,))\nreturn torch.relu(flat).view(x.shape)"


@pytest.mark.parametrize(
    ("inputs", "is_flat"),
    [
        ("torch.randn(32, 48)", True),
        ("torch.randn(32, 96)[:, ::2]", False),
        ("torch.randn(64, 48)[::2]", False),
        ("torch.randn(48, 32).t()", False),
        ("torch.randn(1, 48).expand(32, 48)", False),
        ("torch.randn(4, 3, 8, 8).to(memory_format=torch.channels_last)", False),
        ("torch.randn(32, 144).chunk(3, dim=1)[1]", False),
    ],
)
def test_inputs_keep_the_strides_that_get_inputs_gives_them(
    cpu: CpuToolchain, tmp_path: Path, inputs: str, is_flat: bool
) -> None:
    given = reference(tmp_path, "return torch.relu(x)", inputs=inputs)
    strides = "assert x.stride() == STRIDE, x.stride()\nreturn torch.relu(x)"
    more = f"STRIDE = {inputs}.stride()\n"
    honest = kernel(strides, more=more)
    checked = cpu.check(given, honest)
    assert checked.verdict is Verdict.PASSED, checked.message
    timed = cpu.time(given, honest)
    assert isinstance(timed, TimingResult), timed
    flat = cpu.check(given, kernel(FLAT))
    assert (flat.verdict is Verdict.PASSED) is is_flat, flat.message


@pytest.mark.parametrize("order", ["(8, 2, 2, 3)).permute(0, 3, 1, 2", "(8, 3, 2, 2)).contiguous("])
def test_weights_lie_for_a_kernel_as_they_do_in_the_reference(cpu: CpuToolchain, tmp_path: Path, order: str) -> None:
    forward, inputs = "return F.conv2d(x, self.weight, stride=2)", "torch.randn(4, 3, 8, 8)"
    given = reference(tmp_path, forward, init=f"self.weight = nn.Parameter(torch.randn({order}))", inputs=inputs)
    stride = eval(f"torch.randn({order}).stride()", {"torch": torch})
    contiguous = "self.weight = nn.Parameter(torch.randn(8, 3, 2, 2))"
    strides = f"assert self.weight.stride() == {stride}, self.weight.stride()\n{forward}"
    honest = kernel(strides, init=contiguous)
    checked = cpu.check(given, honest)
    assert checked.verdict is Verdict.PASSED, checked.message
    assert "drawn anew" in check_of(checked, findings.OTHER_WEIGHTS).detail
    timed = cpu.time(given, honest)
    assert isinstance(timed, TimingResult), timed
    told = () if stride == (12, 4, 2, 1) else (LaidOut("weight", (8, 3, 2, 2), stride),)
    assert cpu.limit(given).laid_out == told
    flat = "weight = torch.as_strided(self.weight, (8, 3, 2, 2), (12, 4, 2, 1))\nreturn F.conv2d(x, weight, stride=2)"
    checked = cpu.check(given, kernel(flat, init=contiguous))
    assert (checked.verdict is Verdict.PASSED) is (told == ()), checked.message


def test_a_kernel_that_ignores_strides_is_wrong_where_the_policy_asks_for_any(
    cpu: CpuToolchain, tmp_path: Path
) -> None:
    for inputs in ("torch.randn(32, 48)", "torch.randn(4, 3, 8, 8)"):
        given = reference(tmp_path, "return torch.relu(x)", inputs=inputs, policy=Policy(strides=Strides.ANY))
        wrong = cpu.check(given, kernel(FLAT))
        assert wrong.verdict is Verdict.INCORRECT
        assert "other strides" in wrong.message
        assert cpu.check(given, kernel("return torch.relu(x)")).verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("forward", "inputs", "arguments"),
    [
        ("return x[0] + x[1]", "[torch.randn(8, 8), torch.randn(8, 8)]", "x"),
        ("return x['a'] * x['b'][0]", "{'a': torch.randn(8, 8), 'b': (torch.randn(8, 8), 3)}", "x"),
        ("return x.to(d) * 2", "torch.randn(8, 8), torch.float64", "x, d"),
        ("return {'sum': x.sum(1), 'rest': (x * 2, [x + 1])}", "torch.randn(8, 8)", "x"),
        ("return torch.topk(x, 3)", "torch.randn(8, 8)", "x"),
        ("return (x * 2,)", "torch.randn(8, 8)", "x"),
    ],
)
def test_nested_arguments_and_results_are_handed_over_and_compared(
    cpu: CpuToolchain, tmp_path: Path, forward: str, inputs: str, arguments: str
) -> None:
    given = reference(tmp_path, forward, inputs=inputs, arguments=arguments)
    checked = cpu.check(given, kernel(forward, arguments=arguments))
    assert checked.verdict is Verdict.PASSED, checked.message


def test_a_result_of_another_form_is_told_with_the_form_that_is_expected(cpu: CpuToolchain, tmp_path: Path) -> None:
    single = cpu.check(reference(tmp_path, "return (x * 2,)"), kernel("return x * 2"))
    assert "forward returned a tensor. Expected a tuple or list of (a tensor,)" in single.message
    named = cpu.check(reference(tmp_path, "return {'a': x, 'b': x * 2}"), kernel("return {'a': x, 'c': x * 2}"))
    assert "Expected a dict {'a': a tensor, 'b': a tensor}" in named.message


@pytest.mark.parametrize(
    ("answer", "other", "is_right"),
    [
        ("torch.topk(x, 3)[1]", "x.size(1) - 1 - torch.topk(x.flip(1), 3)[1]", True),
        ("torch.sort(x, dim=0)[1]", "x.size(0) - 1 - torch.sort(x.flip(0), dim=0)[1]", True),
        ("x.argmax(1)", "x.size(1) - 1 - x.flip(1).argmax(1)", True),
        ("torch.topk(x, 3)[1]", "torch.topk(x, 3)[1][:, :1].expand(-1, 3).contiguous()", False),
        ("x.argmax(1)", "(x.argmax(1) + 1) % x.size(1)", False),
    ],
)
def test_of_equal_values_any_index_is_right_and_none_twice(
    cpu: CpuToolchain, tmp_path: Path, answer: str, other: str, is_right: bool
) -> None:
    given = reference(tmp_path, f"return {answer}", inputs="torch.randint(0, 4, (16, 32)).float() / 3")
    checked = cpu.check(given, kernel(f"return {other}"))
    assert (checked.verdict is Verdict.PASSED) is is_right, checked.message


def test_a_secret_size_finds_a_kernel_made_for_the_told_ones(cpu: CpuToolchain, tmp_path: Path) -> None:
    given = reference(tmp_path, "return torch.relu(x)", inputs="torch.randn(N, M)", policy=Policy(secret_sizes=True))
    sized = replace(given, source=f"N, M = 32, 48\n{given.source}")
    right = cpu.check(sized, kernel("return torch.relu(x)"))
    assert right.verdict is Verdict.PASSED, right.message
    assert "secretly" in check_of(right, findings.OTHER_SHAPES).detail
    wrong = cpu.check(sized, kernel("y = torch.relu(x)\nreturn y if tuple(x.shape) == (32, 48) else y * 2"))
    assert wrong.verdict is Verdict.INCORRECT
    assert "right at the task's own sizes, but not with" in wrong.message
