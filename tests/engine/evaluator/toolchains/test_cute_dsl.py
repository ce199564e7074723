"""CuTe's Python DSL without a GPU: what is said where it is missing, and that it compiles where it is installed."""

from __future__ import annotations

import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine import supervisor
from engine.errors import EngineError, ToolchainError
from engine.evaluator import languages, tasks
from engine.evaluator.build import cute_dsl
from engine.evaluator.checks.launches import FOREIGN, OWN, Launched, Launches
from engine.evaluator.processes import first_calls
from engine.evaluator.sandbox import OwnFailure
from engine.evaluator.toolchains.cuda import CompileGate
from storage.results.policy import Policy
from storage.results.vocabulary import Verdict
from tests.engine.evaluator.languages.test_contract import CUTE_DSL
from tests.engine.exemplars import files, task_of

NEEDS = "needs CuTe's Python DSL: requirements-cute-dsl.txt"
installed = pytest.mark.skipif(not cute_dsl.version(), reason=NEEDS)


def request(device: str) -> Any:
    """As `ahead` looks at a request."""
    return types.SimpleNamespace(is_just_in_time=True, source=CUTE_DSL, language="cute_dsl", device=device)


@pytest.mark.skipif(bool(cute_dsl.version()), reason="CuTe's Python DSL is installed")
def test_where_it_is_not_installed_the_remedy_is_named(tmp_path: Path) -> None:
    with pytest.raises(OwnFailure, match="pip install -r requirements-cute-dsl.txt"):
        first_calls.ahead(request("cuda"), tmp_path)


def test_no_kernel_of_it_runs_on_a_processor_and_what_else_can_be_done_is_said(tmp_path: Path) -> None:
    with pytest.raises(OwnFailure, match="compile FILE --task TASK --arch"):
        first_calls.ahead(request("cpu"), tmp_path)
    with pytest.raises(EngineError, match="choose the toolchain cuda"):
        supervisor.new_settings("swish", toolchain="cpu", model="manual", language="cute_dsl")
    with pytest.raises(ToolchainError, match="--task TASK"):
        CompileGate.compile(object.__new__(CompileGate), CUTE_DSL)


def test_a_kernel_is_known_by_its_function_whatever_the_dsl_adds() -> None:
    assert languages.written_in(CUTE_DSL) == "cute_dsl"
    launches = Launches(Policy(), beginnings=languages.beginnings(CUTE_DSL))
    names = {
        "kernel_cutlass_double_tensorptrf32gmemo100233111_0": OWN,
        "kernel_cutlass_doubled_tensorptrf32gmemo100233111_0": FOREIGN,
        "double": FOREIGN,
        "sm90_xmma_gemm_f32f32": FOREIGN,
    }
    assert {name: launches.origin(Launched(name, "", 1, 10)) for name in names} == names


def test_an_error_while_tracing_names_the_line_and_who_called_and_one_of_a_launch_is_none() -> None:
    source = "def kernel():\n    return missing\n\n\ndef host():\n    kernel()\n"
    space: dict[str, Any] = {}
    exec(compile(source, "candidate.py", "exec"), space)

    def generate_mlir(function: Any) -> None:  # as the DSL's function is called
        function()

    def run_compiled_program(function: Any) -> None:
        generate_mlir(function)

    with pytest.raises(NameError) as tracing:
        generate_mlir(space["host"])
    assert cute_dsl.explained(tracing.value, source) == (
        "candidate.py:2: error: NameError: name 'missing' is not defined\n"
        "    return missing\n    called from candidate.py:6"
    )
    with pytest.raises(NameError) as running:
        run_compiled_program(space["host"])
    assert cute_dsl.explained(running.value, source) == ""
    assert cute_dsl.explained(ValueError("no"), source) == ""


def test_machine_code_that_is_none_has_no_kernels() -> None:
    assert list(cute_dsl.resources(b"")) == []
    assert list(cute_dsl.resources(b"ML\xefR\x7fELF\x02\x01\x01" + 80 * b"\xff")) == []


@installed
def test_it_compiles_without_a_gpu_and_its_errors_have_the_line(cpu_home: None) -> None:
    task = tasks.find("swish").task("cuda", {})
    with CompileGate("sm_90a") as gate:
        built = gate.compile(CUTE_DSL, task)
        assert built.is_ok, built.diagnostics
        [kernel] = built.resources
        assert kernel.kernel == "double"
        assert 0 < kernel.registers <= 64
        assert kernel.stack_bytes == 0
        assert gate.compile(CUTE_DSL, task).is_cached
        wrong = gate.compile(CUTE_DSL.replace("2 * x[at]", "2 * z[at]"), task)
    assert wrong.verdict is Verdict.COMPILE_ERROR
    assert "candidate.py:14: error: NameError: name 'z' is not defined" in wrong.diagnostics, wrong.diagnostics


@installed
@pytest.mark.parametrize("path", files("cuda", "cute_dsl"), ids=lambda path: path.stem)
def test_an_example_kernel_compiles(cpu_home: None, path: Path) -> None:
    task = replace(task_of(path, "tf32"), language="cute_dsl")
    with CompileGate("sm_90a") as gate:
        built = gate.compile(path.read_text(), task)
    assert built.is_ok, built.diagnostics
    assert all(kernel.registers and not kernel.stack_bytes for kernel in built.resources), built.resources
