"""Building for a device: flags, phases, what the compiler says, and one real build where there is nvcc."""

from __future__ import annotations

import pytest
from rich.console import Console

from engine.cli.judgement import print_compiled
from engine.errors import ToolchainError
from engine.evaluator.build import light_headers, request
from engine.evaluator.build.device import build, flags, installation, recipe
from engine.evaluator.build.device.installation import DeviceInstallation
from engine.evaluator.build.host.flags import FlagRefused
from engine.evaluator.build.host.recipe import Binding
from engine.evaluator.toolchains.cuda import CompileGate
from storage.results.evaluation_results import CompileResult, KernelResources
from storage.results.vocabulary import Verdict
from tests.engine.evaluator.build import nvcc_output

CUDA = """#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime.h>
template <class T>
__global__ void scale(const T* x, T* y, long n) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * T(2);
}
torch::Tensor twice(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda() && x.scalar_type() == torch::kFloat32, "x must be float32 on the device");
  auto y = torch::empty_like(x.permute({1, 0}).contiguous());
  auto stream = at::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "twice", [&] {
    scale<scalar_t><<<1, 256, 0, stream>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.numel());
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""
MODULE = f'''import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""{CUDA}"""
ext = load_inline(name="twice", cpp_sources="torch::Tensor twice(torch::Tensor x);", cuda_sources=CUDA,
                  functions=["twice"], extra_cuda_cflags=["-O3", "--use_fast_math"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.twice(x)
'''


def has_nvcc() -> bool:
    try:
        installation.find_nvcc()
    except ToolchainError:
        return False
    return True


@pytest.mark.skipif(not has_nvcc(), reason="no nvcc here")
def test_a_file_compiles_on_a_machine_without_a_device(cpu_home: None) -> None:
    wrong = MODULE.replace("x[i] * T(2)", "x[i] * Unknown")
    with CompileGate("sm_90a") as gate:
        built, failed = gate.compile(MODULE), gate.compile(wrong)
    assert built.is_ok, built.diagnostics
    assert sorted(one.kernel for one in built.resources) == ["scale<double>", "scale<float>"]
    assert all(one.registers > 0 and one.spill_stores == 0 for one in built.resources)
    line = wrong.split("\n").index("  if (i < n) y[i] = x[i] * Unknown;") + 1
    assert failed.verdict is Verdict.COMPILE_ERROR
    assert failed.diagnostics.split("\n")[0] == f'candidate.py:{line}: error: identifier "Unknown" is undefined'


def test_a_compiled_file_is_told_kernel_by_kernel() -> None:
    console = Console(record=True, width=100)
    kernels = build.kernel_resources(nvcc_output.RESOURCES)
    print_compiled(console, CompileResult(True, 1.5, resources=kernels, remarks=build.spills(kernels)))
    told = console.export_text()
    assert "passed, 1.5 s" in told
    assert "1020 bytes spilled" in told


def test_both_halves_of_the_compiler_say_an_error_and_it_is_told_once() -> None:
    assert build.excerpt(nvcc_output.UNKNOWN_NAME).split("\n") == [
        'candidate.py:26: error: identifier "Unknown" is undefined',
        "              r.x = Unknown(1) + __fdividef(1.0f, 1.0f + __expf(-v.x));",
        "                    ^",
    ]
    assert not build.is_gap(nvcc_output.UNKNOWN_NAME)


def test_an_error_inside_a_header_names_the_candidates_lines_that_led_there() -> None:
    said = build.excerpt(nvcc_output.TEMPLATE).split("\n")
    assert said[0].startswith("include/cute/underscore.hpp:169: error: incomplete type")
    assert said[1:3] == ["    needed at candidate.py:41", "    needed at candidate.py:124"]
    assert "note" not in " ".join(said)
    assert any(line.startswith("candidate.py:56: error: no instance") for line in said)


def test_what_ptxas_refuses_is_told() -> None:
    assert "uses too much shared data" in build.excerpt(nvcc_output.SHARED)
    assert build.has_reason(nvcc_output.SHARED)
    assert not build.has_reason("Segmentation fault (core dumped)")


@pytest.mark.parametrize(
    "said",
    [
        'namespace "at" has no member "sigmoid"',
        'class "at::Tensor" has no member "swapaxes"',
        'identifier "TORCH_CHECK_TYPE" is undefined',
        'no operator "+" matches these operands\n            operand types are: at::Tensor + at::Tensor',
    ],
)
def test_what_the_light_headers_lack_sends_a_device_build_the_stock_way(said: str) -> None:
    assert build.is_gap(f"candidate.py(12): error: {said}\n")


def test_resources_of_each_kernel_are_read_and_spills_are_remarked() -> None:
    gemm, swish = build.kernel_resources(nvcc_output.RESOURCES)
    assert gemm == KernelResources("gemm_device<float, float, 128, ...>", 64, 1020, 996, 8304, 688)
    assert swish == KernelResources("swish", 24)
    assert len(build.spills((gemm, swish))) == 1


def test_kernel_names_are_readable() -> None:
    assert build.demangled("_ZN55_GLOBAL__N__8b2c_9_kernel_cu_main4fastEPf") != ""
    assert build.demangled("_ZN4mine6kernelILi4EEEvPf") == "kernel<4>"
    assert build.demangled("plain") == "plain"


def test_a_dry_run_of_another_shape_is_not_taken_apart() -> None:
    found = recipe.phases_of(nvcc_output.DRY_RUN)
    assert found is not None
    assert "--gen_module_id_file" not in found.front
    assert found.device.count("&&") == 3
    assert "$$CICC_PATH/cicc" in found.ninja()
    assert recipe.phases_of(nvcc_output.DRY_RUN.replace("cicc", "other")) is None
    assert recipe.phases_of("nvcc fatal : no input\n") is None


def test_nvcc_flags_that_reach_beyond_the_code_are_refused() -> None:
    for flag in ("-Xcompiler=-fplugin=x.so", "-ccbin=/tmp/x", "@file", "--keep-dir=/", "-o x", "-rdc=true", "x.cu"):
        with pytest.raises(FlagRefused):
            flags.allowed([flag])
    assert flags.allowed(["-O3 -I/usr/share/cutlass/include", "-Xptxas", "-O3,-v"]) == ("-O3", "-Xptxas=-O3,-v")
    assert flags.has_arch(flags.allowed(["-gencode", "arch=compute_90a,code=sm_90a"]))
    assert flags.libraries(["-lcuda", "-L/tmp", "-Wl,@/etc/passwd", "/tmp/x.so"]) == ("-lcuda",)


def test_names_that_the_light_headers_lack_are_seen_before_anything_is_compiled() -> None:
    assert light_headers.can_do([CUDA], ["twice"])
    for lacking in (
        "at::native::foo(x);",
        "#include <ATen/native/cuda/Loops.cuh>",
        "PYBIND11_MODULE(a, m) {}",
        "x.unbind(0);",
    ):
        assert not light_headers.can_do([CUDA + lacking], ["twice"])
    assert light_headers.includes(["std::unordered_map<int, at::Half> seen;"])[-1] == "unordered_map"


def test_the_architecture_is_in_the_key_and_in_the_command() -> None:
    here = DeviceInstallation(**dict.fromkeys(DeviceInstallation.__slots__, "/x") | {"torch_version": "2.11.0"})
    wanted = request.read(
        {"name": "x", "sources": ["int f();"], "functions": ["f"], "flags": [], "cuda_sources": ["a"]}
    )
    one, other = (
        recipe.write(wanted, "", DeviceInstallation(**{**_plain(here), "arch": arch}), Binding.STABLE)
        for arch in ("sm_90a", "sm_80")
    )
    assert one.key != other.key
    assert "-gencode=arch=compute_90a,code=sm_90a" in one.nvcc


def _plain(here: DeviceInstallation) -> dict[str, str]:
    return {name: getattr(here, name) for name in DeviceInstallation.__slots__}
