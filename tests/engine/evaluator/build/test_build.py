"""What builds, what does not, and what is said about it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch.utils import cpp_extension

from engine.evaluator.build import request
from engine.evaluator.build.host import build, flags, installation, recipe
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.cpu import CpuToolchain
from storage.home import home
from storage.results.vocabulary import Verdict
from tests.cheats.declaration import KERNELS
from tests.engine.evaluator.toolchains import kernels
from tests.engine.evaluator.toolchains.fixtures import free

EXTENSIONS: Any = cpp_extension


def test_an_error_is_reported_at_its_line_of_the_python_file(cpu: CpuToolchain, small_swish: Task) -> None:
    source = kernels.swish(loop="  for (int i = 0; i < size(X); ++i) Y(i) = Unknown(i);\n")
    line = source.split("\n").index("  for (int i = 0; i < size(X); ++i) Y(i) = Unknown(i);") + 1
    built = cpu.compile(small_swish, source)
    assert built.verdict is Verdict.COMPILE_ERROR
    assert f"candidate.py:{line}: error:" in built.diagnostics
    assert "Unknown" in built.diagnostics
    assert len(built.diagnostics.split("\n")) <= 60
    assert "TORCH_EXTENSION_NAME" not in built.log, "an ordinary mistake must not pay for the stock header"


def test_a_long_template_error_names_the_candidates_line(cpu: CpuToolchain, small_swish: Task) -> None:
    built = cpu.compile(small_swish, kernels.swish(loop="  auto tile = local_tile(X, X, X); copy(tile, Y);\n"))
    assert built.verdict is Verdict.COMPILE_ERROR
    assert "candidate.py:16" in built.diagnostics
    assert len(built.diagnostics) < 60 * 301
    assert len(built.log) >= len(built.diagnostics)


def test_a_failed_build_counts_even_when_the_module_carries_on(cpu: CpuToolchain, small_swish: Task) -> None:
    body = kernels.swish(loop="  nonsense;\n", call="        return ext.swish(x) if ext else torch.empty_like(x)\n")
    source = body.replace("ext = load_inline(", "try:\n  ext = load_inline(").replace(
        kernels.LOAD, kernels.LOAD + "\nexcept RuntimeError:\n  ext = None"
    )
    assert cpu.compile(small_swish, source).verdict is Verdict.COMPILE_ERROR


def test_what_the_light_header_lacks_is_built_with_the_stock_one(cpu: CpuToolchain, small_swish: Task) -> None:
    source = (KERNELS / "cheats" / "library_aten_cpp.py").read_text()  # a build that its own test needs too
    built = cpu.compile(free(small_swish), source)
    assert built.is_ok, built.diagnostics
    assert "TORCH_EXTENSION_NAME" in built.log
    assert cpu.check(free(small_swish), source).verdict is Verdict.PASSED


def test_what_only_compiling_shows_to_be_lacking_is_tried_with_the_stock_one(cpu_home: None, tmp_path: Path) -> None:
    """With a stock header of a few lines: PyTorch's own, which the test before this one builds with, takes g++ twenty
    seconds to read. A flag of its own keeps the light header from being precompiled for this place."""
    here, include = installation.find(), tmp_path / "include"
    shutil.copytree(Path(here.torch) / "include" / "torch" / "headeronly", include / "torch" / "headeronly")
    (include / "torch" / "csrc").symlink_to(Path(here.torch) / "include" / "torch" / "csrc")
    (include / "torch" / "extension.h").write_text(
        "namespace torch { struct Tensor { bool is_meta() const; }; Tensor empty_like(const Tensor&); }\n"
        "#ifndef TORCH_INDUCTOR_CPP_WRAPPER\nnamespace torch::nn { inline void init() {} }\n#endif\n"
    )

    def failed(gap: str) -> str:
        gap = f"auto y = torch::empty_like(x);\n  if (y.is_meta()) return y;\n  {gap}\n  return y;"
        source = f"torch::Tensor f(torch::Tensor x) {{\n  {gap}\n}}\n"
        asked = {"name": "lacking", "sources": [source], "functions": ["f"], "flags": ["-DRARE"]}
        builder = build.Builder(replace(here, torch=str(tmp_path)), home() / "cache" / "cpu")
        with pytest.raises(build.BuildFailed) as refused:
            builder.build(request.read(asked), source)
        assert "TORCH_EXTENSION_NAME" in refused.value.log
        assert "is_meta" not in refused.value.log.partition("error:")[2]
        return refused.value.log

    usual = failed("return 1 +;")
    assert "expected primary-expression" in usual
    assert recipe.WITHOUT_FRONTEND in usual, "PyTorch's header without what hardly a kernel uses is enough to say so"
    whole = failed("torch::nn::init(); return 1 +;")
    assert "expected primary-expression" in whole
    assert "torch::nn" not in whole.partition("error:")[2]
    assert recipe.WITHOUT_FRONTEND not in whole


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (kernels.SWISH.replace("class ModelNew", "class Other"), "ModelNew"),
        (kernels.SWISH.replace("class ModelNew", "class ModelNew(("), "line 24"),
        (kernels.swish(load='functions=["swish"], extra_cflags=["-fplugin=/tmp/x.so"])'), "-fplugin"),
        (kernels.swish(load='functions=["swish"], cuda_sources="__global__ void f() {}")'), "host CPU"),
        (kernels.swish(load='functions=["absent"])'), "absent"),
        (kernels.swish(load='functions=["swish"], sycl_sources="void f();")'), "SYCL"),
        (kernels.swish(load='functions=["swish"], with_sycl=True)'), "SYCL"),
    ],
)
def test_files_that_are_no_candidates_are_compile_errors(
    cpu: CpuToolchain, small_swish: Task, source: str, said: str
) -> None:
    built = cpu.compile(small_swish, source)
    assert built.verdict is Verdict.COMPILE_ERROR
    assert said in built.diagnostics


def test_an_exception_at_import_is_a_runtime_error_with_the_candidates_line(
    cpu: CpuToolchain, small_swish: Task
) -> None:
    built = cpu.compile(small_swish, kernels.SWISH + "\n\nraise ValueError('no luck')\n")
    assert built.verdict is Verdict.RUNTIME_ERROR
    assert "no luck" in built.diagnostics
    assert 'File "candidate.py", line 29' in built.diagnostics


def test_tiles_copied_as_wide_words_are_right_even_when_the_candidate_asks_for_strict_aliasing(
    cpu: CpuToolchain, small_swish: Task
) -> None:
    source = kernels.swish(loop=kernels.TILED_LOOP, load='functions=["swish"], extra_cflags=["-fstrict-aliasing"])')
    checked = cpu.check(small_swish, source)
    assert checked.verdict is Verdict.PASSED, checked.message


def test_fast_math_reaches_the_compiler_but_not_the_whole_process(cpu: CpuToolchain, small_swish: Task) -> None:
    # With -DTILE=4 the set is rare: the header is not precompiled for it, which would take longer than this build.
    source = kernels.swish(
        loop=kernels.FAST_LOOP,
        load='functions=["swish"], extra_cflags=["-O3", "-ffast-math", "-DTILE=4"], extra_ldflags=["-ffast-math"])',
        call="        assert float(torch.tensor([1e-40]) * 1) > 0, 'subnormals are off'\n" + kernels.CALL,
    )
    built = cpu.compile(small_swish, source)
    assert built.is_ok, built.diagnostics
    compiled, linked = [line for line in built.log.split("\n") if "g++" in line]
    assert "-ffast-math" in compiled
    assert "-ffast-math" not in linked
    checked = cpu.check(small_swish, source)
    assert checked.verdict is Verdict.PASSED, checked.message


def test_the_vector_length_macro_is_there(cpu: CpuToolchain, small_swish: Task) -> None:
    source = kernels.swish(loop='  static_assert(TILEWRIGHT_VL == 16 || TILEWRIGHT_VL == 8, "");\n' + kernels.LOOP)
    assert cpu.compile(small_swish, source).is_ok


def test_flags_that_reach_beyond_the_code_are_refused() -> None:
    for flag in (
        "-I/etc",
        "-include",
        "@file",
        "-B.",
        "-fplugin=x.so",
        "-o",
        "-Wl,-rpath,x",
        "-fdump-tree-all",
        "x.cpp",
    ):
        with pytest.raises(flags.FlagRefused):
            flags.allowed([flag])
    assert flags.allowed(["-O3", "-march=native", "-ffast-math", "-DTILE=4 -std=c++17"]) == ("-ffast-math", "-DTILE=4")
    assert [flags.has_shared_header(extra) for extra in ((), ("-ffast-math",), ("-DTILE=4",))] == [True, True, False]
    assert flags.compile_flags(["-fstrict-aliasing"])[-1] == "-fno-strict-aliasing"
    assert flags.allowed(["-fstrict-aliasing"]) == (), "it is built with the header that others share"


def test_lines_are_found_for_plain_strings_and_not_guessed_for_others() -> None:
    module = 'A = 1\nS = """\nint f();\n"""\nT = "int g();\\nint h();"\n'
    assert request.line_of("\nint f();\n", module) == 2
    assert request.line_of("int g();\nint h();", module) is None
    assert request.line_of("not there", module) is None


def test_an_order_that_is_not_text_is_refused() -> None:
    good = {"name": "x", "sources": ["a"], "functions": ["f"], "flags": []}
    assert request.read(good).functions == ("f",)
    for change in ({"sources": 3}, {"functions": ["f(); int g"]}, {"name": "../x"}, {"sources": ["a" * 5_000_000]}):
        with pytest.raises(request.RequestRefused):
            request.read({**good, **change})


def asked(monkeypatch: pytest.MonkeyPatch, call: Callable[[], object]) -> dict[str, Any]:
    """What a candidate's call asks to be built."""
    orders: list[Any] = []
    for name in ("load", "load_inline"):
        monkeypatch.setattr(cpp_extension, name, getattr(cpp_extension, name))  # put back after the test

    def ask(order: Mapping[str, object]) -> Mapping[str, Any]:
        orders.append(order["build"])
        return {"excerpt": "seen"}

    request.intercept(ask)
    with pytest.raises(request.BuildError, match="seen"):
        call()
    return dict(orders[0])


def test_every_argument_of_load_inline_is_honoured_or_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them by name, so that one that PyTorch adds or takes away shows here."""
    order = asked(
        monkeypatch,
        lambda: EXTENSIONS.load_inline(
            name="one", cpp_sources="int f();", cuda_sources=["__global__ void k();"], sycl_sources=None,
            functions={"f": "what it does"}, extra_cflags="-O2", extra_cuda_cflags=["-lineinfo"],
            extra_sycl_cflags=["x"], extra_ldflags=["-lm -lfoo"], build_directory="/tmp/b",
            extra_include_paths=["/opt/cutlass/include", "/opt/mine"],
            verbose=True, with_cuda=True, with_sycl=False, is_python_module=True, with_pytorch_error_handling=False,
            keep_intermediates=False, use_pch=True, no_implicit_headers=True,
        ),
    )  # fmt: skip
    read = request.read(order)
    assert (read.sources, read.cuda_sources, read.functions) == (("int f();",), ("__global__ void k();",), ("f",))
    assert (read.flags, read.cuda_flags, read.link_flags) == (("-O2",), ("-lineinfo",), ("-lm -lfoo",))
    assert (read.is_wrapped, read.has_headers) == (False, False)
    told = " ".join((*read.remarks, *request.not_linked(flags.not_linked(read.link_flags), "PyTorch")))
    assert [word in told for word in ("/opt/mine", "cutlass/", "build_directory", "-lfoo", "-lm ")] == [
        True, False, True, True, False,
    ]  # fmt: skip
    place = installation.find()
    text = recipe.write(read, "", place, recipe.Binding.STOCK).files["main.cpp"]
    assert "torch/extension.h" not in text
    assert 'm.def("f", f, "f");' in text
    plain = recipe.write(replace(read, is_wrapped=True, has_headers=True), "", place, recipe.Binding.STOCK)
    assert "torch::wrap_pybind_function(f)" in plain.files["main.cpp"]
    assert plain.key != recipe.write(read, "", place, recipe.Binding.STOCK).key


def test_every_argument_of_load_is_honoured_or_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    texts = {"a.cpp": "\ufeff#include <torch/extension.h>", "b.cu": "__global__ void k();", "c.sycl": "void s();"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)

    def call(*files: str, **more: Any) -> dict[str, Any]:
        paths = [str(tmp_path / file) for file in files]
        return asked(
            monkeypatch,
            lambda: EXTENSIONS.load(
                "one", paths, ["-O2"], ["-lineinfo"], [], ["-lm"], [], None, verbose=True, with_cuda=None,
                with_sycl=None, keep_intermediates=True, **more,
            ),
        )  # fmt: skip

    read = request.read(call("a.cpp", "b.cu", is_python_module=False))
    assert (read.sources, read.cuda_sources) == (("#include <torch/extension.h>",), ("__global__ void k();",))
    assert (read.link_flags, read.has_headers, read.remarks) == (("-lm",), False, ())
    for order, said in (
        (call("c.sycl"), "SYCL"),
        (call("a.cpp", is_python_module=False, is_standalone=True), "program"),
    ):
        with pytest.raises(request.RequestRefused, match=said):
            request.read(order)


def test_an_argument_that_pytorch_does_not_have_is_refused_in_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("load", "load_inline"):
        monkeypatch.setattr(cpp_extension, name, getattr(cpp_extension, name))
    request.intercept(lambda order: {})
    with pytest.raises(TypeError, match="extra_clfags"):
        EXTENSIONS.load_inline("one", "int f();", extra_clfags=["-O3"])


def test_operators_that_a_library_registers_are_there_and_those_of_the_same_call_stay(
    cpu: CpuToolchain, small_swish: Task
) -> None:
    source = (KERNELS / "honest" / "torch_library.py").read_text()  # a build that its own test needs too
    built = cpu.compile(free(small_swish), source)
    assert built.is_ok, built.diagnostics
    assert "torch/extension.h" not in built.log
    assert cpu.check(small_swish, source).verdict is Verdict.PASSED


def test_a_library_of_the_stable_interface_registers_operators_too(cpu: CpuToolchain, small_swish: Task) -> None:
    source = """
import torch
from torch.utils.cpp_extension import load_inline
SOURCE = '''
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <cmath>
using torch::stable::Tensor;
Tensor swish(Tensor x) {
  Tensor y = torch::stable::empty_like(x);
  const float* p = static_cast<const float*>(x.data_ptr());
  float* q = static_cast<float*>(y.data_ptr());
  for (int64_t i = 0; i < x.numel(); ++i) q[i] = p[i] / (1.0f + std::exp(-p[i]));
  return y;
}
STABLE_TORCH_LIBRARY(stable_ops, m) { m.def("swish(Tensor x) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL(stable_ops, CPU, m) { m.impl("swish", TORCH_BOX(&swish)); }
'''
load_inline("stable_ops", SOURCE, is_python_module=False, no_implicit_headers=True)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.ops.stable_ops.swish(x)
"""
    checked = cpu.check(small_swish, source)
    assert checked.verdict is Verdict.PASSED, checked.message


def test_only_errors_the_light_header_can_cause_send_a_build_the_stock_way() -> None:
    gap = "candidate.py:12:20: error: ‘sigmoid’ is not a member of ‘torch’"
    plain = "candidate.py:12:20: error: cannot convert ‘torch::Tensor’ to ‘float*’"
    assert build.is_gap(gap)
    assert not build.is_gap(plain)


def test_vectorisation_remarks_keep_candidate_lines_only() -> None:
    text = (
        "candidate.py:16:20: missed: couldn't vectorize loop\n/usr/include/x.h:3:1: missed: couldn't vectorize loop\n"
        "candidate.py:12:3: missed: statement clobbers memory: foo\n"
        "candidate.py:9:3: optimized: loop vectorized using 64 byte vectors\n"
    )
    assert build.remarks(text) == (
        "line 9: optimized: loop vectorized using 64 byte vectors",
        "line 16: missed: couldn't vectorize loop",
    )
