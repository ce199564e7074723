"""Variants of a task with bfloat16 and float16 tensors: inputs, weights, answers and baseline are of that dtype."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import TaskError
from engine.evaluator import tasks
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.cpu import CpuToolchain
from engine.search.steps import briefing
from storage.results.evaluation_results import TimingResult
from storage.results.policy import Policy
from storage.results.vocabulary import Verdict
from tests.engine.evaluator.toolchains import half_tensors


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize("name", half_tensors.SOURCES)
def test_kernels_of_narrow_tensors_pass_in_their_class_and_are_timed_against_that_dtype(
    name: str, dtype: str, cpu: CpuToolchain
) -> None:
    task = Task(name, half_tensors.SOURCES[name], {}, policy=Policy(dtype=dtype))
    source = half_tensors.kernel(name, "cpu")
    assert cpu.compile(task, source).is_ok
    right = cpu.check(task, source)
    assert right.verdict is Verdict.PASSED, right.message
    assert right.precision == f"{dtype}-class"
    if name == "linear":
        wrong = cpu.check(task, half_tensors.rounding(source))
        assert wrong.verdict is Verdict.INCORRECT, wrong
    elif dtype == "bf16":
        timed = cpu.time(task, source)
        assert isinstance(timed, TimingResult), timed
        assert timed.baseline == "eager, bf16"
        assert cpu.limit(task).min_bytes == 2 * 32 * 160 * 2


def test_a_module_that_keeps_a_tensor_in_float32_is_told_of_as_the_tasks_fault(cpu: CpuToolchain) -> None:
    text = half_tensors.SOURCES["linear"].replace("self.fc(x)", "torch.matmul(torch.ones(3, 8), self.fc(x))")
    task = Task("mixed", text, {}, policy=Policy(dtype="bf16"))
    with pytest.raises(TaskError, match=r"with bf16 tensors: without --dtype they stay as written"):
        cpu.check(task, half_tensors.kernel("linear", "cpu"))


def test_a_variant_is_named_by_what_it_is_and_told_in_the_prompt(tmp_path: Path) -> None:
    assert tasks.find("softmax-bf16-backward").policy == tasks.policy_with(
        tasks.find("softmax").policy, dtype="bf16", backward=True
    )
    path = tmp_path / "own.py"
    path.write_text(half_tensors.SOURCES["silu"])
    path.with_suffix(".toml").write_text('[policy]\ndtype = "fp16"\n')
    found = tasks.read(path)
    assert found.name == "own-fp16"
    assert "Tensors are float16" in briefing.contract("cpu", found.task())
    assert tasks.policy_with(found.policy, dtype="own") == Policy()
    with pytest.raises(TaskError, match="dtype fp16 is a precision class of its own"):
        tasks.policy_with(found.policy, precision="half")
