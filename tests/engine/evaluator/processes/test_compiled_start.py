"""A candidate out of files that Inductor of PyTorch 2.11 wrote on an H200 (`inductor/`, comments left out)."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from engine.evaluator import languages, tasks
from engine.evaluator.build import tunables
from engine.evaluator.checks.screening import screen
from engine.evaluator.processes import compiler_source
from engine.evaluator.processes.compiled_start import Generated, Launch, NoStart, refuse_libraries, standalone
from storage.results.policy import Policy

WRITTEN = Path(__file__).with_name("inductor")
SHAPE = ((16, 64, 256, 256),)
NORM = ("self.norm.weight", "self.norm.bias", "x")
SCAN = """import torch
import torch.nn as nn
import torch.nn.functional as F

AXIS = 1


class Model(nn.Module):
    def __init__(self):
        super(Model, self).__init__()
        self.axis = AXIS
        self.check()

    def check(self):
        '''Told apart.'''
        assert self.axis

    def forward(self, x):
        return torch.cumsum(x, self.axis) + 0 * F.relu(x)
"""


@pytest.fixture(scope="module")
def helpers() -> str:
    spec = importlib.util.find_spec("torch._inductor.runtime.triton_helpers")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text()


def generated(name: str, arguments: tuple[str, ...], shapes: tuple[tuple[int, ...], ...], code: str = "") -> Generated:
    code = code or (WRITTEN / f"{name}.txt").read_text()
    launch = Launch({"XBLOCK": 2, "R0_BLOCK": 2048}, {"num_warps": 8, "num_stages": 1})
    names = re.findall(r"^(triton_\w+) = async_compile", code, re.MULTILINE)
    return Generated(code, dict.fromkeys(names, launch), arguments, shapes, "tensor")


def layer_norm(helpers: str, *others: Generated) -> str:
    source = tasks.find("layer_norm").task("cuda").source
    return standalone(source, [generated("layer_norm", NORM, SHAPE), *others], helpers, "2.11.0")


class Kernel:
    """In place of a compiled kernel: keeps how it is launched."""

    launched: list[tuple[str, tuple[int, ...], int, dict[str, int]]] = []  # noqa: RUF012 - a test's own

    def __init__(self, function: Any) -> None:
        self.name = function.__name__

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        return lambda *given, **words: self.launched.append((self.name, grid, len(given), words))


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of Triton that a file needs to be executed where there is none."""
    monkeypatch.setattr(Kernel, "launched", [])
    fake: Any = ModuleType("triton")
    fake.jit, fake.cdiv = Kernel, lambda count, block: -(-count // block)
    language: Any = ModuleType("triton.language")
    extra: Any = ModuleType("triton.language.extra")
    language.constexpr = language.math = extra.libdevice = None
    fake.language = language
    for name, one in (("triton", fake), ("triton.language", language), ("triton.language.extra", extra)):
        monkeypatch.setitem(sys.modules, name, one)


def test_the_file_stands_alone_passes_screening_and_says_where_it_is_from(helpers: str) -> None:
    source = layer_norm(helpers)
    assert screen(source, Policy(), "triton") == []
    assert languages.LANGUAGES["triton"].lacks(source) == ""
    assert "_inductor" not in source
    assert source.startswith("# What torch.compile (Inductor of PyTorch 2.11.0) generated for this module")
    assert "Functions named inductor_* are copied from PyTorch (BSD-3-Clause licence)" in source
    made = {one.name for one in ast.parse(source).body if isinstance(one, ast.FunctionDef)}
    assert {"inductor_welford_combine", "triton_per_fused_native_layer_norm_1"} <= made
    declared = tunables.read(source)
    assert declared.remarks == ()
    assert [(one.name, one.candidates) for one in declared.tunables][:2] == [
        ("XBLOCK_0", (1, 2, 4)), ("RBLOCK_0", (1024, 2048, 4096)),
    ]  # fmt: skip


def test_kernels_are_launched_as_inductor_launches_them_each_for_its_shapes(triton: None, helpers: str) -> None:
    small = (
        (WRITTEN / "layer_norm.txt")
        .read_text()
        .replace("67108864", "1485")
        .replace("(16, 64, 256, 256)", "(3, 5, 9, 11)")
    )
    names: dict[str, Any] = {}
    exec(
        layer_norm(helpers, generated("", NORM, ((3, 5, 9, 11),), small)).replace("device='cuda'", "device='cpu'"),
        names,
    )
    model = names["ModelNew"]((5, 9, 11))
    model(torch.empty(SHAPE[0], device="meta"))
    assert Kernel.launched == [
        (
            "triton_red_fused_native_layer_norm_0",
            (256,),
            6,
            {"XBLOCK": 2, "R0_BLOCK": 2048, "num_warps": 8, "num_stages": 1},
        ),
        ("triton_per_fused_native_layer_norm_1", (8,), 7, {"XBLOCK": 2, "num_warps": 8, "num_stages": 1}),
        ("triton_poi_fused_native_layer_norm_2", (33554432,), 7, {"XBLOCK": 2, "num_warps": 8, "num_stages": 1}),
    ]
    model(torch.empty(3, 5, 9, 11))
    assert [name for name, *_ in Kernel.launched[3:]] == [
        "triton_red_fused_native_layer_norm_0", "triton_per_fused_native_layer_norm_1",
        "triton_poi_fused_native_layer_norm_2_1",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="compiled for other shapes than"):
        model(torch.empty(3, 5, 9, 12))


def test_the_model_is_made_as_the_task_makes_it_and_what_computes_is_left_out(helpers: str) -> None:
    source = standalone(SCAN, [generated("cumsum", ("x",), ((1024, 4000),))], helpers, "2.11.0")
    assert screen(source, Policy(), "triton") == []
    assert "super(ModelNew, self).__init__()" in source
    assert "AXIS = 1" in source
    assert "def check(self):" in source
    assert "relu" not in source
    assert "inductor_select_one(tmp4" in source
    assert "_triton_helper_fn_add0)" in source
    loss = tasks.find("cross_entropy").task("cuda").source
    shapes = ((32768, 4096), (32768,))
    told = standalone(loss, [generated("cross_entropy", ("predictions", "targets"), shapes)], helpers, "2.11.0")
    assert "buf8 = buf4\n        del buf4\n" in told, "memory is used again as Inductor does"
    assert screen(told, Policy(), "triton") == []


def test_where_there_is_no_cpp_compiler_torch_compile_still_serves_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import config, cpu_vec_isa

    known = list(cpu_vec_isa.supported_vec_isa_list)
    monkeypatch.setattr(cpu_vec_isa, "supported_vec_isa_list", list(known))
    monkeypatch.setattr(config.cpp, "cxx", (None, "/nonexistent/g++"))
    monkeypatch.setattr(config.cpp, "vec_isa_ok", None)
    compiler_source.take_first_instruction_set()
    # Where the processor has none that a build must show, one is taken all the same.
    assert set(map(str, cpu_vec_isa.supported_vec_isa_list)) <= set(map(str, known))


@pytest.mark.parametrize(
    ("frames", "error", "built"), [(1, None, [False]), (2, None, [False, True]), (1, IndexError, [False, True])]
)
def test_kernels_for_the_processor_are_built_only_where_a_module_goes_on_by_what_they_compute(
    frames: int, error: type[Exception] | None, built: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._dynamo.utils import counters
    from torch._inductor import async_compile, utils

    build, found = async_compile.AsyncCompile.cpp_pybinding, list[bool]()

    def run_and_get_code(call: Callable[[], str]) -> tuple[str, list[str]]:
        found.append(async_compile.AsyncCompile.cpp_pybinding is build)
        counters["frames"]["total"] += frames
        if error and not found[-1]:
            raise error
        return call(), ["text"]

    monkeypatch.setattr(utils, "run_and_get_code", run_and_get_code)
    assert compiler_source._written_by(lambda: "y", "cpu") == ("y" if built[-1] else None, ["text"])
    assert found == built


def test_what_calls_a_library_is_no_start_and_the_call_is_named() -> None:
    with pytest.raises(NoStart, match=r"leaves work to PyTorch's library \(extern_kernels\.mm\)"):
        refuse_libraries((WRITTEN / "square_matmul.txt").read_text())


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("'grid_type': 'Grid1D'", "'grid_type': 'SplitScanGrid'", "a grid of the kind SplitScanGrid"),
        ("triton_helpers.welford(", "triton_helpers.if_mask(", "need if_mask of Inductor's run time"),
        ("del arg0_1\n", "buf4.record_stream(3)\n", "a line of its calls is of a kind that is not taken over"),
        ("buf3 = empty_strided_cuda(", "buf3 = other(", "its calls have other"),
        ("return (buf6, )", "return (buf6, buf6)", "returns 2 tensors, and the module another number"),
        ("arg0_1, arg1_1, arg2_1 = args", "arg0_1, arg1_1 = args", "its call takes 2 tensors"),
    ],
)
def test_what_cannot_be_taken_over_is_named(helpers: str, old: str, new: str, why: str) -> None:
    code = (WRITTEN / "layer_norm.txt").read_text()
    assert old in code
    source = tasks.find("layer_norm").task("cuda").source
    with pytest.raises(NoStart, match=re.escape(why)):
        standalone(source, [generated("", NORM, SHAPE, code.replace(old, new))], helpers, "2.11.0")
