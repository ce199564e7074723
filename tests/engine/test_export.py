"""An exported kernel where Tilewright is not installed: what it asks of PyTorch, what it misses, and that it runs."""

from __future__ import annotations

import fcntl
import importlib.util
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch.utils import cpp_extension

from engine.errors import EngineError
from engine.exporting import carried, exported, standing_alone, without_support
from storage.results.hardware_limit import LaidOut
from storage.run.blobs import Blobs
from tests.engine.evaluator.checks.screening import recorded
from tests.engine.evaluator.languages.test_contract import CUTE_DSL, TRITON
from tests.engine.evaluator.toolchains.kernels import SWISH
from tests.engine.search.llm.test_cuda_recordings import last
from tests.examples import LONG, PROFILE
from tests.real_pair import real_pair

# What KernelBench's evaluator does with a source: it puts lines before it, and runs the text without a file.
PLAIN = """
import importlib.util, sys, torch
file, folder = sys.argv[1:]
spec = importlib.util.spec_from_file_location("kernel", file)
loaded = importlib.util.module_from_spec(spec)
spec.loader.exec_module(loaded)
context = {"BUILD_DIRECTORY": folder}
source = f"import os\\nos.environ['TORCH_EXTENSIONS_DIR'] = '{folder}'\\n" + open(file).read()
exec(compile(source, "<string>", "exec"), context)
x = torch.randn(5, 33)
for model in (loaded.ModelNew(), context["ModelNew"]()):
    torch.testing.assert_close(model(x), x * torch.sigmoid(x))
print("equal", any(name.partition(".")[0] in ("engine", "storage") for name in sys.modules))
"""
# In the process that has built it, and then in one that finds no program, there with "load".
PICKLED = """
import sys; sys.path.insert(0, "")
import copy, pickle, torch
if sys.argv[1] == "load":
    model = pickle.load(open("model.pickle", "rb"))
    assert torch.load("model.pt", weights_only=False).held[1] is model.held[1]
else:
    import kernel
    model = kernel.ModelNew()
    model.held = kernel.extension, kernel.extension.swish
    pickle.dump(copy.deepcopy(model), open("model.pickle", "wb"))
    torch.save(model, "model.pt")
x = torch.randn(5, 33)
assert all(call(x).equal(model(x)) for call in (model.held[0].swish, model.held[1]))
print("equal")
"""
# Of PyTorch's own extension.h what the kernel needs: g++ reads all of it for twenty seconds, which it does once for
# engine/evaluator/build/test_build.py already.
SHORT_EXTENSION_H = """#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
namespace torch { using namespace at; }
"""


@pytest.mark.judging
def test_a_kernel_of_a_cpu_run_loads_in_a_plain_process_and_as_kernelbench_loads_it(
    home: Path, tmp_path: Path, shared_cache: Path
) -> None:
    kernel, builds = tmp_path / "kernel.py", shared_cache / "exported"  # PyTorch builds anew what has changed
    builds.mkdir(exist_ok=True)
    kernel.write_text(exported(real_pair(home), "c001"))
    assert "# Kernel 1 of Tilewright run swish-" in kernel.read_text()
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TORCH_EXTENSIONS_DIR": str(builds)}
    if PROFILE != LONG:
        (shared_cache / "short" / "torch").mkdir(parents=True, exist_ok=True)
        (shared_cache / "short" / "torch" / "extension.h").write_text(SHORT_EXTENSION_H)
        environment["CPATH"] = str(shared_cache / "short")  # g++ looks here before PyTorch's own headers
    command = [sys.executable, "-I", "-c", PLAIN, str(kernel), str(builds)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "equal False\n", done.stderr
    for way in ("save", "load"):
        environment |= {"PATH": "/nowhere", "CXX": "/nowhere/c++"} if way == "load" else {}
        command = [sys.executable, "-I", "-c", PICKLED, way]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.stdout == "equal\n", done.stderr
        assert "Building" not in done.stderr


@pytest.mark.parametrize("task", recorded.CUDA_TASKS)
def test_an_exported_kernel_can_be_judged_again_as_it_was(task: str) -> None:
    for toolchain in ("cuda", "cpu") if task in recorded.TASKS else ("cuda",):
        for source in recorded.kernels(task, toolchain).values():
            text = standing_alone(source, toolchain)
            assert "= _tilewright(load_inline" in text
            assert without_support(text) == source
            lying = standing_alone(source, toolchain, laid_out=[LaidOut("weight", (8, 3, 2, 2), (12, 1, 6, 3))])
            assert "{'weight': ((8, 3, 2, 2), (12, 1, 6, 3))})\n_tilewright_guard(" in lying
            assert without_support(lying) == source


def test_an_exported_triton_kernel_says_what_it_needs_and_can_be_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    text = standing_alone(TRITON, "cuda")
    assert without_support(text) == TRITON
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="This kernel needs Triton: install PyTorch with CUDA"):
        exec(compile(text, "kernel", "exec", dont_inherit=True), {})


def test_an_exported_kernel_of_cutes_python_dsl_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    text = standing_alone(CUTE_DSL, "cuda")
    assert without_support(text) == CUTE_DSL
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'nvidia-cutlass-dsl\[cu13\]=="):
        exec(compile(text, "kernel", "exec", dont_inherit=True), {})


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, Any]]:
    """What exported kernels ask of PyTorch's load_inline, on a machine with a toolkit and no GPU."""
    calls: list[dict[str, Any]] = []

    def load_inline(name: str, cpp_sources: list[str], cuda_sources: list[str], **options: Any) -> None:
        calls.append({"name": name, "cpp": cpp_sources, "cuda": cuda_sources, **options})

    monkeypatch.setattr(cpp_extension, "load_inline", load_inline)
    monkeypatch.setattr(cpp_extension, "CUDA_HOME", "/usr/local/cuda")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(shutil, "which", lambda program: program)
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0")
    return calls


def load(source: str, toolchain: str = "cuda") -> None:
    exec(compile(standing_alone(source, toolchain), "kernel", "exec", dont_inherit=True), {})


def on_gpu(monkeypatch: pytest.MonkeyPatch, *capability: int) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA L4")


def test_a_kernel_is_exported_however_it_names_load_inline_and_without_future_imports(
    asked: list[dict[str, Any]],
) -> None:
    source = (
        "from __future__ import annotations\r\nfrom torch.utils.cpp_extension import load_inline as make\r\n"
        "import torch.utils.cpp_extension as c\r\ná = make('a', '')\r\nb = c.load_inline(name='b', cpp_sources='')\r\n"
        'def f(x: dict["{0}", {1}]) -> Later: ...\r\nn: Other = 3\r\nassert f.__annotations__["return"] == "Later"\r\n'
    )
    load(source)
    assert [call["name"].partition("_")[0] for call in asked] == ["a", "b"]
    assert "á = _tilewright(make)('a', '')\r\nb = _tilewright(c.load_inline)(name='b'" in standing_alone(source, "cuda")


def test_kernels_of_one_name_do_not_share_a_build_folder_and_equal_ones_do(asked: list[dict[str, Any]]) -> None:
    own = SWISH.replace("torch::Tensor swish(", "PYBIND11_MODULE(swish_ext, m) {}\ntorch::Tensor swish(")
    for source in (SWISH, SWISH, SWISH.replace("std::exp", "::expf"), own):
        load(source)
    names = [call["name"] for call in asked]
    assert names[0] == names[1] != names[2]
    assert names[2].startswith("swish_ext_")
    assert names[3] == "swish_ext"


def test_a_kernel_gets_the_architecture_that_its_instructions_and_the_gpu_need(
    asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, hopper = last("swish"), last("square_matmul")
    own = "-gencode=arch=compute_90a,code=sm_90a"
    unnamed = hopper.replace(f'extra_cuda_cflags=["{own}"]', "extra_cuda_cflags=('-O3',)")
    assert unnamed != hopper
    for source in (plain, hopper, unnamed):
        load(source)
    on_gpu(monkeypatch, 9, 0)
    for source in (plain, hopper, unnamed):
        load(source)
    on_gpu(monkeypatch, 8, 9)
    load(plain)
    flags = [call["extra_cuda_cflags"] for call in asked]
    assert flags == [
        [], [own], ["-O3", own], [own], [own], ["-O3", own], ["-gencode=arch=compute_89,code=sm_89"],
    ]  # fmt: skip
    with pytest.raises(ImportError, match=r"needs a Hopper GPU \(H100, H200\); this one is NVIDIA L4$"):
        load(hopper)


def test_a_kernel_of_a_cpu_run_is_built_with_the_flags_that_it_was_judged_with(asked: list[dict[str, Any]]) -> None:
    load(SWISH.replace("functions=", "extra_cflags='-ffast-math', functions="), "cpu")
    (call,) = asked
    assert call["extra_cflags"][-2:] == ["-ffast-math", "-fno-strict-aliasing"]
    assert {"-O3", "-march=native", "-fopenmp"} < set(call["extra_cflags"])
    assert call["extra_ldflags"] == ["-fopenmp"]
    assert "#define TILEWRIGHT_VL 8" in call["cpp"][0]


def test_what_is_no_kernel_is_not_exported(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = real_pair(home)
    with pytest.raises(EngineError, match="no kernel c009"):
        exported(folder, "c009")
    monkeypatch.setattr(Blobs, "get", lambda _blobs, _name: "class ModelNew(:\n")
    with pytest.raises(EngineError, match="kernel 2 of run .* is not valid Python"):
        exported(folder, None)


def missing(source: str, toolchain: str = "cuda") -> str:
    """The one sentence that a kernel ends in."""
    with pytest.raises(ImportError) as refusal:
        load(source, toolchain)
    told = str(refusal.value)
    assert "lock" not in told  # KernelBench would take it for a build that another process does, and try again
    return told.removeprefix("This kernel needs ")


def test_what_a_machine_lacks_is_told_in_one_sentence(
    asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = last("swish")
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST")
    assert missing(source) == "a GPU, or TORCH_CUDA_ARCH_LIST (9.0a for an H200) to be built without one"
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0")
    monkeypatch.setattr(sys, "path", [])
    assert missing(source) == (
        "the CuTe headers: pip install nvidia-cutlass, or set CUTLASS_PATH to a copy of github.com/NVIDIA/cutlass"
    )
    (tmp_path / "include/cute").mkdir(parents=True)
    (tmp_path / "include/cute/tensor.hpp").touch()
    for name, folder in (("CUTLASS_PATH", ""), ("CUTLASS_HOME", ""), ("TILEWRIGHT_CUTLASS_INCLUDE", "/include")):
        with monkeypatch.context() as chosen:
            chosen.setenv(name, f"{tmp_path}{folder}")
            load(source)
            assert asked[-1]["extra_include_paths"][0] == f"{tmp_path}/include"
    monkeypatch.setenv("CUTLASS_PATH", str(tmp_path))
    monkeypatch.setattr(cpp_extension, "CUDA_HOME", str(tmp_path))
    assert missing(source).startswith("the CUDA headers that CuTe includes: pip install nvidia-cuda-runtime==13.0.* ")
    programs = [f"{tmp_path}/bin/nvcc", "ninja", "c++"]
    remedies = [
        "nvcc: install the CUDA toolkit 13.0, or set CUDA_HOME to where it is", "ninja: pip install ninja",
        "a C++ compiler: apt install g++",
    ]  # fmt: skip
    for program, remedy in zip(programs, remedies, strict=True):
        with monkeypatch.context() as without:
            without.setattr(shutil, "which", lambda name, gone=program: None if name == gone else name)
            assert missing(source) == remedy
    monkeypatch.setattr(torch.version, "cuda", None)
    assert missing(source) == "a CUDA build of PyTorch: https://pytorch.org/get-started/locally"


def test_operators_keep_the_namespace_that_an_extension_is_called_by() -> None:
    def name(text: str) -> str:
        return str(carried._tilewright(lambda name, *_given, **_named: name)("own", text))

    assert name("TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {}") == "own"
    assert name("TORCH_LIBRARY(other, m) {}").startswith("own_")


def test_the_lock_of_a_process_that_was_ended_while_it_built_is_broken(
    asked: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load(SWISH, "cpu")
    assert "Building swish" in capsys.readouterr().err
    (ours,) = (tmp_path / "extensions").rglob("tilewright.lock")
    ours.with_name("lock").touch()
    load(SWISH, "cpu")
    assert not ours.with_name("lock").exists()
    assert len(asked) == 2


def test_a_kernel_that_needs_all_of_pytorchs_header_is_built_with_all_of_it(
    asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    build, names = cast(Any, cpp_extension.load_inline), list[str]()

    def failing(name: str, *given: Any, **options: Any) -> None:
        names.append(name)
        if "-DTORCH_INDUCTOR_CPP_WRAPPER" in options["extra_cflags"]:
            raise RuntimeError("Error building extension: 'nn' is not a member of 'torch'")
        build(name, *given, **options)

    monkeypatch.setattr(cpp_extension, "load_inline", failing)
    load(SWISH, "cpu")
    assert names == [names[0], f"{names[0]}_whole"]
    assert [call["name"] for call in asked] == [f"{names[0]}_whole"]


def test_whoever_comes_while_a_kernel_is_built_waits_and_says_so(
    asked: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load(SWISH, "cpu")
    (ours,) = (tmp_path / "extensions").rglob("tilewright.lock")
    with ours.open("w") as builder:
        fcntl.flock(builder, fcntl.LOCK_EX)
        threading.Timer(0.2, fcntl.flock, (builder, fcntl.LOCK_UN)).start()
        load(SWISH, "cpu")
    assert "Waiting for another process that builds swish" in capsys.readouterr().err
    assert len(asked) == 2
