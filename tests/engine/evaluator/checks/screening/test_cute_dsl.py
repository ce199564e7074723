"""What a file in CuTe's Python DSL may use of the packages that only it may import."""

from __future__ import annotations

import pytest

from engine.evaluator.checks.screening import Rule, screen
from engine.search import exemplars
from storage.results.policy import Policy
from tests.engine.evaluator.languages.test_contract import CUTE_DSL

FORWARD = "        y = x.clone()\n"
REFUSED: dict[str, tuple[Rule, str, str]] = {
    "driver call": (Rule.MACHINERY, "", "from cuda.bindings import driver\n        driver.cuStreamCreate(0)"),
    "driver module": (Rule.MACHINERY, "import cuda.bindings.runtime as r", "r.cudaDeviceSynchronize()"),
    "its benchmarks": (Rule.MACHINERY, "from cutlass.cute import testing", "testing.benchmark(doubling)"),
    "its benchmarks by another name": (Rule.MACHINERY, "import cutlass.testing as t", "t.JitArguments(x)"),
    "its machinery": (Rule.MACHINERY, "from cutlass.base_dsl.dsl import BaseDSL", "BaseDSL.jit = print"),
    "its machinery by attribute": (Rule.MACHINERY, "", "cutlass._mlir.ir.Context()"),
    "calls of C": (Rule.MACHINERY, "", "cute.ffi(name='system')"),
    "LLVM calls": (Rule.MACHINERY, "from cutlass._mlir.dialects import llvm", "llvm.call(None, [], 'system')"),
    "loads a library": (Rule.MACHINERY, "", "cute.runtime.load_module('a.o')"),
    "another name": (Rule.MACHINERY, "", "double.set_name_prefix('vectorized_elementwise_kernel')"),
    "compiler's files": (Rule.MACHINERY, "", "cute.compile(doubling, x, options='--keep-cubin')"),
    "linked code": (Rule.MACHINERY, "", "cute.compile[cute.LinkLibraries('a.bc')](doubling, x)"),
    "the clock": (Rule.MACHINERY, "", "cute.arch.globaltimer()"),
    "another stream": (Rule.STREAMS, "", "cutlass.torch.default_stream()"),
    "writes an object": (Rule.OUTSIDE, "", "cute.compile(doubling, x).export_to_c('/tmp/x', 'y')"),
    "its variables": (Rule.OUTSIDE, "import os", "os.environ['CUTE_DSL_LIBS'] = '/tmp/x.so'"),
}
ALLOWED = (
    "cutlass.Float32(1.0), cutlass.BFloat16, cutlass.Int64, cutlass.Uint8, cutlass.Boolean, cutlass.Float8E4M3FN",
    "cutlass.range_constexpr(3), cutlass.range(3), cutlass.const_expr(True), cutlass.min(1, 2)",
    "cutlass.memory.SmemAllocator(), cutlass.utils.HardwareInfo(), cutlass.pipeline.PipelineTmaAsync",
    "cute.runtime.make_ptr(cutlass.Float32, x.data_ptr(), cute.AddressSpace.gmem), cute.compile(doubling, x)",
    "cutlass.cutlass_dsl.dsl_user_op, cutlass.torch.dtype(torch.float32), cute.nvgpu.warpgroup.fence()",
)


def of(top: str, line: str) -> str:
    return f"{top}\n{CUTE_DSL}".replace(FORWARD, f"{FORWARD}        {line}\n")


@pytest.mark.parametrize("name", REFUSED)
def test_what_leaves_the_kernels_business_is_refused(name: str) -> None:
    rule, top, line = REFUSED[name]
    found = [one for one in screen(of(top, line), Policy(), "cute_dsl") if one.is_refusal]
    assert rule in {one.rule for one in found}, found


@pytest.mark.parametrize("line", ALLOWED)
def test_what_a_kernel_needs_is_not(line: str) -> None:
    assert not [one for one in screen(of("", line), Policy(), "cute_dsl") if one.is_refusal]
    assert not [one for one in screen(of("", line), Policy()) if one.is_refusal]  # the text says which language it is


def test_its_packages_are_for_its_files_alone() -> None:
    plain = "import cutlass\nimport torch\n\n\nclass ModelNew(torch.nn.Module): ...\n"
    assert {one.rule for one in screen(plain, Policy()) if one.is_refusal} == {Rule.IMPORTS}


@pytest.mark.parametrize("name", exemplars.table("cuda", "cute_dsl").examples)
def test_nothing_stands_against_the_examples(name: str) -> None:
    source = exemplars.source("cuda", name, "cute_dsl")
    assert not [one for one in screen(source, Policy(precision="half"), "cute_dsl") if one.is_refusal]
