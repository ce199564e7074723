"""bfloat16 and float16 variants on a GPU: the same two modules as on the CPU."""

from __future__ import annotations

import pytest

from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.cuda import CudaToolchain
from storage.results.evaluation_results import TimingResult
from storage.results.policy import Policy
from storage.results.vocabulary import Verdict
from tests.engine.evaluator.toolchains import half_tensors

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize("name", half_tensors.SOURCES)
def test_kernels_of_narrow_tensors_pass_and_are_timed_against_that_dtype(
    name: str, dtype: str, gpu: CudaToolchain
) -> None:
    task = Task(name, half_tensors.SOURCES[name], {}, policy=Policy(dtype=dtype))
    source = half_tensors.kernel(name, "cuda")
    built = gpu.compile(task, source)
    assert built.is_ok, built.diagnostics
    checked = gpu.check(task, source)
    assert checked.verdict is Verdict.PASSED, checked.message
    assert checked.precision == f"{dtype}-class"
    timed = gpu.time(task, source)
    assert isinstance(timed, TimingResult), timed
    assert timed.baseline == f"eager, {dtype}"
    if name == "linear":
        assert gpu.check(task, half_tensors.rounding(source)).verdict is Verdict.INCORRECT
