"""Forward and backward on a GPU: the same three modules as on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.evaluator.toolchains.cuda import CudaToolchain
from storage.results.evaluation_results import TimingResult
from storage.results.vocabulary import Verdict
from tests.engine.evaluator.toolchains import both_passes

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", both_passes.TASKS)
def test_right_gradients_are_timed_and_a_wrong_one_is_refused(name: str, tmp_path: Path, gpu: CudaToolchain) -> None:
    task, source = both_passes.task(name, tmp_path), both_passes.kernel(name, "cuda")
    built = gpu.compile(task, source)
    assert built.is_ok, built.diagnostics
    checked = gpu.check(task, source)
    assert checked.verdict is Verdict.PASSED, checked.message
    timed = gpu.time(task, source)
    assert isinstance(timed, TimingResult), timed
    assert timed.baseline == "eager, forward and backward"
    wrong = gpu.check(task, both_passes.wrong(source))
    assert wrong.verdict is Verdict.INCORRECT
    assert wrong.message.startswith("The gradient of ")


def test_a_gradient_by_autograd_is_a_fall_back_and_a_missing_one_is_told(tmp_path: Path, gpu: CudaToolchain) -> None:
    task, source = both_passes.task("silu", tmp_path), both_passes.kernel("silu", "cuda")
    refused = gpu.check(task, both_passes.by_autograd(source))
    assert refused.verdict is Verdict.REFUSED
    assert "aten::silu_backward" in refused.message
    missing = gpu.check(task, both_passes.without_backward(source))
    assert missing.verdict is Verdict.INCORRECT
    assert "the gradient of input 0 is missing" in missing.message
    profiled = gpu.profile(task, source)
    assert len({metric.launch for metric in profiled.metrics if metric.launch >= 0}) >= 2, profiled.summary
