import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Example: z = scale * x + y on flat tensors. A thread moves 16 bytes at a time, and its neighbour the next 16.
cpp_source = "torch::Tensor scaled_add(torch::Tensor x, torch::Tensor y, double scale);"

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

constexpr int THREADS = 256, PER_THREAD = 4;  // float4 in flight per thread

__global__ void __launch_bounds__(THREADS) scaled_add_kernel(
    float4 const* __restrict__ x, float4 const* __restrict__ y, float4* __restrict__ z, float scale, int64_t quads) {
  int64_t const first = int64_t(blockIdx.x) * THREADS * PER_THREAD + threadIdx.x;
  float4 a[PER_THREAD], b[PER_THREAD];
  #pragma unroll
  for (int i = 0; i < PER_THREAD; ++i) {  // all loads stand before the first use
    int64_t const at = first + i * THREADS;
    if (at < quads) {
      a[i] = x[at];
      b[i] = y[at];
    }
  }
  #pragma unroll
  for (int i = 0; i < PER_THREAD; ++i) {
    int64_t const at = first + i * THREADS;
    if (at < quads)
      z[at] = make_float4(fmaf(scale, a[i].x, b[i].x), fmaf(scale, a[i].y, b[i].y), fmaf(scale, a[i].z, b[i].z),
                          fmaf(scale, a[i].w, b[i].w));
  }
}

// What is left of the last four, or everything where a tensor does not lie on 16 bytes.
__global__ void scaled_add_singly(float const* x, float const* y, float* z, float scale, int64_t begin, int64_t end) {
  int64_t const at = begin + int64_t(blockIdx.x) * THREADS + threadIdx.x;
  if (at < end) z[at] = fmaf(scale, x[at], y[at]);
}

torch::Tensor scaled_add(torch::Tensor x, torch::Tensor y, double scale) {
  TORCH_CHECK(x.is_contiguous() && y.is_contiguous() && x.numel() == y.numel(), "expected contiguous tensors alike");
  auto z = torch::empty_like(x);
  float const* px = x.data_ptr<float>();
  float const* py = y.data_ptr<float>();
  float* pz = z.data_ptr<float>();
  int64_t const count = x.numel();
  bool const is_aligned = (reinterpret_cast<uintptr_t>(px) | reinterpret_cast<uintptr_t>(py)) % 16 == 0;
  int64_t const quads = is_aligned ? count / 4 : 0, left = count - 4 * quads;
  auto stream = at::cuda::getCurrentCUDAStream();
  if (quads > 0)
    scaled_add_kernel<<<(quads + THREADS * PER_THREAD - 1) / (THREADS * PER_THREAD), THREADS, 0, stream>>>(
        reinterpret_cast<float4 const*>(px), reinterpret_cast<float4 const*>(py), reinterpret_cast<float4*>(pz),
        float(scale), quads);
  if (left > 0)
    scaled_add_singly<<<(left + THREADS - 1) / THREADS, THREADS, 0, stream>>>(px, py, pz, float(scale), 4 * quads, count);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return z;
}
"""

extension = load_inline(name="scaled_add", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["scaled_add"])


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x, y):
        return extension.scaled_add(x.contiguous(), y.contiguous(), self.scale)
