"""What runs on the GPU in a candidate's calls decides, not what its text could run; no screening here."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from engine.evaluator import tasks
from engine.evaluator.checks import operators
from storage.results import observed
from storage.results.check_records import CheckOutcome, CheckRecord
from storage.results.evaluation_results import CheckResult, TimingResult
from storage.results.policy import EVERYTHING
from storage.results.vocabulary import Verdict

pytestmark = pytest.mark.gpu
SWISH = tasks.find("swish").task("cuda", {"batch_size": 512, "dim": 8192})
# 0.05 ms on an H200: under 0.1 ms a call with what a slow host adds, and over what it takes to launch it.
LONGER = tasks.find("swish").task("cuda", {"batch_size": 1664, "dim": 8192})
MATMUL = tasks.find("square_matmul").task("cuda", {"N": 1024})
_FILE = '''
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <cublas_v2.h>
#include <dlfcn.h>

__global__ void touch(const float* x, float* y, long n) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) { float v = x[i]; y[i] = v / (1.0f + expf(-v)); }
}
typedef cublasStatus_t (*gemm_t)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const float*,
                                 const float*, int, const float*, int, const float*, float*, int);
torch::Tensor run(torch::Tensor x, torch::Tensor w) {
  auto y = torch::empty_like(x);
  long n = x.numel();
  auto stream = at::cuda::getCurrentCUDAStream();
  BODY
  return y;
}
"""
extension = load_inline(
    name="NAME",
    cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor w);",
    cuda_sources=SOURCE,
    functions=["run"],
)


class ModelNew(nn.Module):
    def forward(self, *inputs):
        FORWARD
'''
LAUNCH = "touch<<<(n + 255) / 256, 256, 0, stream>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);"
GEMM = """
  int m = x.size(0); float one = 1, zero = 0;
  at::cuda::getCurrentCUDABlasHandle();
  auto gemm = (gemm_t)dlsym(RTLD_DEFAULT, "cublasSgemm_v2");
  if (!gemm) gemm = (gemm_t)dlsym(dlopen("libcublas.so.13", RTLD_NOW | RTLD_GLOBAL), "cublasSgemm_v2");
  TORCH_CHECK(gemm, "no cublasSgemm_v2");
  gemm(at::cuda::getCurrentCUDABlasHandle(), CUBLAS_OP_N, CUBLAS_OP_N, m, m, m, &one, w.data_ptr<float>(), m,
       x.data_ptr<float>(), m, &zero, y.data_ptr<float>(), m);
"""
OWN_STREAM = """
  auto other = at::cuda::getStreamFromPool();
  { c10::cuda::CUDAStreamGuard guard(other); at::sigmoid_out(y, x); }
  cudaStreamSynchronize(other);
  y.mul_(x);
"""
GRAPH = """
  static at::cuda::CUDAGraph* graph = nullptr; static torch::Tensor in, out;
  auto other = at::cuda::getStreamFromPool();
  if (!graph) {
    in = x.clone(); graph = new at::cuda::CUDAGraph(); c10::cuda::CUDAStreamGuard guard(other);
    graph->capture_begin(); out = in * at::sigmoid(in); graph->capture_end();
  }
  { c10::cuda::CUDAStreamGuard guard(other); in.copy_(x); graph->replay(); y.copy_(out); }
  cudaStreamSynchronize(other);
"""


def candidate(name: str, body: str, *forward: str) -> str:
    """A candidate whose C++ does `body`."""
    lines = "\n        ".join(forward or ("return extension.run(inputs[0], inputs[-1])",))
    return _FILE.replace("NAME", name).replace("BODY", body).replace("FORWARD", lines)


def check_of(result: CheckResult | TimingResult, name: str) -> CheckRecord:
    return next(one for one in result.proofs if one.check == name)


HIDDEN = {
    "cublas by dlopen": (MATMUL, GEMM, (), "library fall-back: .*gemm"),
    "own stream": (SWISH, OWN_STREAM, (), "aten::sigmoid"),
    "graph": (SWISH, GRAPH, (), "fall-back"),
    "observer ended": (
        SWISH,
        LAUNCH,
        ("torch._C._autograd._disable_profiler()", "return inputs[0] * torch.sigmoid(inputs[0])"),
        "switched off the observer",
    ),
    "thread": (
        SWISH,
        LAUNCH,
        (
            "import threading",
            "made, x = [], inputs[0]",
            "t = threading.Thread(target=lambda: made.append(x * torch.sigmoid(x)))",
            "t.start(); t.join()",
            "return made[0]",
        ),
        "aten::sigmoid",
    ),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_work_that_hides_from_the_text_is_seen_on_the_device(gpu: Any, name: str) -> None:
    task, body, forward, told = HIDDEN[name]
    result = gpu.check(task, candidate(name.replace(" ", "_"), body, *forward))
    assert result.verdict is Verdict.REFUSED, result.message
    assert [one.check for one in result.proofs if one.standing is CheckOutcome.BROKEN] == [operators.CHECK]
    assert re.search(told, result.message), result.message


def test_an_own_kernel_has_all_of_the_devices_time_and_its_speedup_holds_what_the_device_tells(gpu: Any) -> None:
    source = candidate("honest", LAUNCH)
    checked = gpu.check(LONGER, source)
    assert checked.verdict is Verdict.PASSED, checked.message
    kernels = observed.kernels_of(checked.evidence)
    assert kernels is not None
    assert [(one.origin, one.name.split("(")[0]) for one in kernels] == [("own", "touch")]
    assert kernels[0].launches == 1
    assert "own kernels: 100% of the device's time" in check_of(checked, operators.CHECK).detail
    decided = []
    for _ in range(5):
        timed = gpu.time(LONGER, source)
        assert isinstance(timed, TimingResult), timed.message
        second = check_of(timed, "device time")
        print(f"{timed.latency_ms:.4f} ms {timed.speedup_interval}: {second.standing}: {second.detail}")
        told = re.search(r": ([\d.]+)x; by the evaluator's clock", second.detail)
        low, high = timed.speedup_interval
        assert told
        assert low * 0.99 <= float(told[1]) <= high * 1.01, second.detail
        if "the device's clock decides" in second.detail:
            assert second.standing is CheckOutcome.HELD
            decided.append(timed)
    assert decided, "the device's clock decided none of five timings"
    assert max(one.speedup for one in decided) < 1.05 * min(one.speedup for one in decided)
    assert max(one.latency_ms for one in decided) < 1.05 * min(one.latency_ms for one in decided)


def test_a_slow_python_wrapper_is_told(gpu: Any) -> None:
    source = candidate("wrapped", LAUNCH, "n = sum(range(20_000))", "return extension.run(inputs[0], inputs[-1])")
    timed = gpu.time(SWISH, source)
    assert isinstance(timed, TimingResult), timed.message
    assert " us on the host" in check_of(timed, "device time").detail


def test_a_convolution_that_may_stay_with_pytorch_is_as_exact_as_the_reference(gpu: Any) -> None:
    found = tasks.find("conv2d").task("cuda", {"height": 256, "width": 256})
    task = replace(found, policy=replace(found.policy, library_operators=(EVERYTHING,)))
    result: CheckResult = gpu.check(task, f"{task.source}\n\nclass ModelNew(Model):\n    pass\n")
    assert result.verdict is Verdict.PASSED, result.message
    assert result.precision == "fp32-exact"
