"""The example kernels shown to the model: those for a processor are right, those that no GPU has run compile.

Compiling all of them takes minutes; the others are compiled and run in tests/gpu.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import exemplars
from engine.toolchains.cpu import CpuToolchain
from engine.toolchains.cuda import CompileGate
from storage.policy import Policy
from storage.records import Verdict
from tests.engine.build.test_device_build import has_nvcc
from tests.engine.exemplars import files, task_of

CUDA = exemplars.table("cuda").examples


@pytest.mark.parametrize("path", files("cpu"), ids=lambda path: path.stem)
def test_an_example_for_a_processor_is_right(cpu: CpuToolchain, path: Path) -> None:
    task = task_of(path)
    built = cpu.compile(task, path.read_text())
    assert built.is_ok, built.diagnostics
    checked = cpu.check(task, path.read_text())
    assert checked.verdict is Verdict.PASSED, checked.message
    assert checked.precision == "fp32-exact"


@pytest.mark.skipif(not has_nvcc(), reason="no nvcc here")
@pytest.mark.parametrize("name", [name for name, one in CUDA.items() if not one.is_run])
def test_an_example_that_was_never_run_compiles_for_its_architecture(cpu_home: None, name: str) -> None:
    path = next(path for path in files("cuda") if path.stem == name)
    with CompileGate(CUDA[name].architecture, Policy(precision="tf32")) as gate:
        built = gate.compile(path.read_text())
    assert built.is_ok, built.diagnostics
    assert all(one.spill_stores == 0 for one in built.resources)
