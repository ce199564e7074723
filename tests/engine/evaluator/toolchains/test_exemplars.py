"""The example kernels shown to the model: those for a processor are right, those that no GPU has run compile.

Compiling takes minutes and nvcc: it is done where there is a GPU, and in tests/gpu the others are run.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.evaluator import languages
from engine.evaluator.build import cute_dsl
from engine.evaluator.toolchains.cpu import CpuToolchain
from engine.evaluator.toolchains.cuda import CompileGate
from engine.search import exemplars
from engine.search.exemplars import Exemplar
from storage.results.policy import Policy
from storage.results.vocabulary import Verdict
from tests.engine.exemplars import files, task_of

UNTRIED = [
    (language, name, one)
    for language in languages.of_toolchain("cuda")
    for name, one in exemplars.table("cuda", language).examples.items()
    if not one.is_run and (language != "cute_dsl" or cute_dsl.version())
]


@pytest.mark.parametrize("path", files("cpu"), ids=lambda path: path.stem)
def test_an_example_for_a_processor_is_right(cpu: CpuToolchain, path: Path) -> None:
    task = task_of(path)
    built = cpu.compile(task, path.read_text())
    assert built.is_ok, built.diagnostics
    checked = cpu.check(task, path.read_text())
    assert checked.verdict is Verdict.PASSED, checked.message
    assert checked.precision == "fp32-exact"


def compiled_for(one: Exemplar) -> str:
    """Its own architecture where no other runs it, else that of the GPU that is met most."""
    return one.architecture if one.architecture.endswith("a") else "sm_90a"


@pytest.mark.gpu
@pytest.mark.parametrize("arch", sorted({compiled_for(one) for _, _, one in UNTRIED}))
def test_examples_that_were_never_run_compile_for_their_architecture(cpu_home: None, arch: str) -> None:
    with CompileGate(arch, Policy(precision="tf32")) as gate:
        for language, name, one in UNTRIED:
            if compiled_for(one) == arch:
                task = task_of(Path(f"{name}.py"), "tf32")
                built = gate.compile(exemplars.source("cuda", name, language), task)
                assert built.is_ok, (name, built.diagnostics)
                assert [kernel for kernel in built.resources if kernel.spill_stores] == [], name
