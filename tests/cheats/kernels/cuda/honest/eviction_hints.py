"""A row is kept in the L2 cache from the first pass to the second, by hints on the loads of this call alone.

Task: softmax batch_size=4096 dim=8192
Verdict: passed
Says: any
Also without screening: passed
Known from: own
Walls: not needed
Speedup: any
"""
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cuda_runtime.h>

__device__ float load(const float* from, unsigned long long policy) {
  float v;
  asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(v) : "l"(from), "l"(policy));
  return v;
}

__device__ float over_block(float v, float* part, bool is_sum) {
  part[threadIdx.x] = v;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      float other = part[threadIdx.x + half];
      part[threadIdx.x] = is_sum ? part[threadIdx.x] + other : fmaxf(part[threadIdx.x], other);
    }
    __syncthreads();
  }
  float all = part[0];
  __syncthreads();
  return all;
}

__global__ void softmax_kernel(const float* x, float* y, int cols) {
  __shared__ float part[256];
  unsigned long long keep, last;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(keep));
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(last));
  const float* row = x + (long)blockIdx.x * cols;
  float best = -INFINITY;
  bool has_nan = false;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) {
    float v = load(row + i, keep);
    has_nan |= isnan(v);
    best = fmaxf(best, v);
  }
  best = over_block(best, part, false);
  float sum = has_nan ? NAN : 0.0f;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) sum += expf(load(row + i, keep) - best);
  sum = over_block(sum, part, true);
  for (int i = threadIdx.x; i < cols; i += blockDim.x)
    y[(long)blockIdx.x * cols + i] = expf(load(row + i, last) - best) / sum;
}

torch::Tensor softmax(torch::Tensor x) {
  x = x.contiguous();
  auto y = torch::empty_like(x);
  softmax_kernel<<<x.size(0), 256, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources="torch::Tensor softmax(torch::Tensor x);", cuda_sources=SOURCE, functions=["softmax"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.softmax(x)
