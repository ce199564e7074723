"""CuTe's Python DSL on a real GPU: compiled in the compile step, errors with lines, judged, timed and profiled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchmarks import languages
from engine.evaluator import tasks
from engine.evaluator.build import cute_dsl
from engine.evaluator.tasks import Task
from storage.results.evaluation_results import TimingResult
from storage.results.vocabulary import Verdict
from tests.cheats.declaration import CUTE_DSL_KERNELS

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not cute_dsl.version(), reason="needs CuTe's Python DSL: requirements-cute-dsl.txt"),
]
KERNEL = (CUTE_DSL_KERNELS / "honest" / "vectorised.py").read_text()
SIZES = {
    "swish": {"batch_size": 512, "dim": 16384},
    "softmax": {"batch_size": 512, "dim": 16384},
    "layer_norm": {"batch_size": 16},
    "square_matmul": {"N": 1024},
}


def task_named(name: str, other: tuple[dict[str, int], ...] = ()) -> Task:
    task = tasks.find(name).task("cuda", SIZES[name])
    return replace(task, language="cute_dsl", policy=replace(task.policy, other_sizes=other))


@pytest.mark.parametrize("name", SIZES)
def test_a_kernel_of_each_kind_is_right_and_timed(gpu: Any, name: str) -> None:
    task, source = task_named(name), languages.kernel(name, "cute_dsl")
    built = gpu.compile(task, source)
    assert built.is_ok, built.diagnostics
    assert all(kernel.registers for kernel in built.resources)
    checked = gpu.check(task, source)
    assert checked.verdict is Verdict.PASSED, checked.message
    timed = gpu.time(task, source)
    assert isinstance(timed, TimingResult), timed.message


def test_what_was_compiled_is_kept_and_a_profile_names_the_kernel(gpu: Any) -> None:
    task = task_named("swish", ({"batch_size": 33, "dim": 1001},))  # compiled in the check
    assert gpu.compile(task, KERNEL).is_ok
    assert gpu.compile(task, KERNEL).is_cached
    checked = gpu.check(task, KERNEL)
    assert checked.verdict is Verdict.PASSED, checked.message
    timed = gpu.time(task, KERNEL)
    assert isinstance(timed, TimingResult), timed.message
    assert "swish_kernel" in gpu.profile(task, KERNEL, timed).summary


def test_what_the_dsl_says_is_a_compile_error_with_the_line_of_the_file(gpu: Any) -> None:
    source = KERNEL.replace("cute.math.exp(-v.load())", "cute.math.exp(-w.load())")
    line = 1 + source[: source.index("-w.load()")].count("\n")
    built = gpu.compile(task_named("swish"), source)
    assert built.verdict is Verdict.COMPILE_ERROR
    assert f"candidate.py:{line}: error: " in built.diagnostics, built.diagnostics
