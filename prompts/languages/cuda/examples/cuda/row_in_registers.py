import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Example: y = x / (1 + the largest |x| of the row) with one read of the row: each thread holds up to four float4 of it in
# registers until the maximum is known.
cpp_source = "torch::Tensor row_in_registers(torch::Tensor x);"

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

constexpr int THREADS = 256, WARPS = THREADS / 32, HELD = 4;  // float4 per thread: rows of up to 4096 floats

// The largest value of a block, known to all its threads: by shuffles within warps, then over one slot for each warp.
__device__ float block_max(float value) {
  __shared__ float of_warps[WARPS];
  for (int o = 16; o > 0; o >>= 1) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, o));
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  for (int w = 0; w < WARPS; ++w) value = fmaxf(value, of_warps[w]);
  return value;
}

__global__ void __launch_bounds__(THREADS) row_kernel(
    float4 const* __restrict__ x, float4* __restrict__ y, int quads) {
  float4 const* const from = x + int64_t(blockIdx.x) * quads;
  float4* const to = y + int64_t(blockIdx.x) * quads;
  float4 held[HELD];
  float peak = 0.0f;
  #pragma unroll  // known indices keep the array in registers
  for (int i = 0; i < HELD; ++i) {
    int const at = threadIdx.x + i * THREADS;
    held[i] = at < quads ? __ldcs(from + at) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);  // read once: not kept in L2
  }
  #pragma unroll
  for (int i = 0; i < HELD; ++i)
    peak = fmaxf(fmaxf(peak, fmaxf(fabsf(held[i].x), fabsf(held[i].y))), fmaxf(fabsf(held[i].z), fabsf(held[i].w)));
  float const scale = 1.0f / (1.0f + block_max(peak));
  #pragma unroll
  for (int i = 0; i < HELD; ++i) {
    int const at = threadIdx.x + i * THREADS;
    float4 const v = held[i];
    if (at < quads) __stcs(to + at, make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale));
  }
}

torch::Tensor row_in_registers(torch::Tensor x) {
  TORCH_CHECK(x.dim() == 2 && x.is_contiguous(), "expected a contiguous matrix");
  int const rows = x.size(0), cols = x.size(1);
  TORCH_CHECK(cols % 4 == 0 && cols <= 4 * THREADS * HELD, "expected a multiple of 4 columns, at most 4096");
  TORCH_CHECK(reinterpret_cast<uintptr_t>(x.data_ptr<float>()) % 16 == 0, "expected a tensor that begins on 16 bytes");
  auto y = torch::empty_like(x);
  if (rows == 0 || cols == 0) return y;
  row_kernel<<<rows, THREADS, 0, at::cuda::getCurrentCUDAStream()>>>(
      reinterpret_cast<float4 const*>(x.data_ptr<float>()), reinterpret_cast<float4*>(y.data_ptr<float>()), cols / 4);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""

extension = load_inline(name="row_in_registers", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["row_in_registers"])


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.row_in_registers(x)
