"""Triton without a GPU: its interpreter checks values where it is installed, and nothing is timed."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from engine import supervisor
from engine.errors import EngineError, ToolchainError
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.cpu import CpuToolchain
from engine.evaluator.toolchains.cuda import CompileGate
from engine.evaluator.toolchains.evaluating import evaluate
from storage.results.vocabulary import Verdict
from tests.cheats.declaration import TRITON_KERNELS
from tests.engine.exemplars import files, task_of

HAS_TRITON = importlib.util.find_spec("triton") is not None
interpreted = pytest.mark.skipif(not HAS_TRITON, reason="needs Triton's interpreter: requirements-triton.txt")
HONEST = (TRITON_KERNELS / "honest" / "autotuned.py").read_text()


@interpreted
@pytest.mark.parametrize("path", files("cuda", "triton"), ids=lambda path: path.stem)
def test_an_example_kernel_is_right(cpu: CpuToolchain, path: Path) -> None:
    task = replace(task_of(path), language="triton")
    assert cpu.compile(task, path.read_text()).is_ok
    checked = cpu.check(task, path.read_text())
    assert (checked.verdict, checked.precision) == (Verdict.PASSED, "fp32-exact"), checked.message


@interpreted
def test_a_kernel_is_checked_and_not_timed_and_the_answer_says_so(cpu: CpuToolchain, small_swish: Task) -> None:
    answer = evaluate(cpu, small_swish, HONEST)  # of any language: the file tells which
    assert (answer["verdict"], answer["speedup"]) == ("passed", None), answer["message"]
    assert answer["untimed"] == ("checked with Triton's interpreter; not timed: Triton kernels are timed on a GPU")
    wrong = evaluate(cpu, small_swish, HONEST.replace("v * tl.sigmoid(v)", "v * tl.nothing(v)"))
    assert "line 25, in swish_kernel" in wrong["message"], wrong["message"]


@pytest.mark.skipif(HAS_TRITON, reason="Triton's interpreter is installed")
def test_where_the_interpreter_is_not_installed_the_remedy_is_named(cpu: CpuToolchain, small_swish: Task) -> None:
    with pytest.raises(ToolchainError, match="pip install -r requirements-triton.txt"):
        cpu.compile(small_swish, HONEST)


def test_a_run_without_a_gpu_and_a_compilation_without_a_launch_are_refused_with_what_to_do() -> None:
    with pytest.raises(EngineError, match="evaluate TASK FILE --language triton --toolchain cpu` checks one kernel"):
        supervisor.new_settings("swish", toolchain="cpu", model="manual", language="triton")
    with pytest.raises(ToolchainError, match="compiled when it is launched"):
        CompileGate.compile(object.__new__(CompileGate), HONEST)
