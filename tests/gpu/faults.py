"""Kernels that break the device's rules, one fault each, as text. Compiles and runs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_FILE = '''
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <cassert>

__global__ void kernel(const float* x, float* y, long n) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) { BODY }
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  long n = x.numel();
  HOST
  auto stream = at::cuda::getCurrentCUDAStream();
  kernel<<<(n + 255) / 256, THREADS, 0, stream>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""
extension = load_inline(
    name="NAME", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=SOURCE, functions=["run"]
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.run(x)
'''
SWISH = "float v = x[i]; y[i] = v / (1.0f + expf(-v));"
HOARD = (
    "void* p; for (int j = 0; j < 400; ++j) { auto e = cudaMalloc(&p, 1ul << 30); "
    'TORCH_CHECK(e == cudaSuccess, "CUDA error: ", cudaGetErrorString(e)); }'
)


@dataclass(frozen=True, slots=True)
class Fault:
    """What a kernel does wrong, the verdict it must get, and a word its message must hold."""

    source: str
    verdict: str
    word: str


def kernel(name: str, body: str = SWISH, host: str = "", threads: int = 256) -> str:
    """A candidate for the swish task whose kernel does `body` for each element."""
    text = _FILE.replace("BODY", body).replace("HOST", host).replace("THREADS", str(threads))
    return text.replace("NAME", name)


FAULTS: Mapping[str, Fault] = {
    "illegal_address": Fault(kernel("far", "y[i + (1L << 40)] = x[i];"), "runtime_error", "illegal memory access"),
    "misaligned_address": Fault(
        kernel("odd", "*(float4*)((char*)y + 4) = *(const float4*)((const char*)x + 4);"), "runtime_error", "misaligned"
    ),
    "endless_loop": Fault(
        kernel("loop", "volatile float* p = y; while (p[0] != 12345.f) { p[1] = x[i]; }"), "timeout", "no answer within"
    ),
    "wrong_launch": Fault(kernel("launch", threads=2048), "runtime_error", "invalid"),
    "out_of_memory": Fault(kernel("hoard", host=HOARD), "out_of_memory", "memory"),
    "trap": Fault(kernel("trap", 'if (i == 77) asm("trap;"); y[i] = x[i];'), "runtime_error", "launch failure"),
    "device_assert": Fault(kernel("claim", "y[i] = x[i]; assert(i < 5);"), "runtime_error", "assert"),
}
