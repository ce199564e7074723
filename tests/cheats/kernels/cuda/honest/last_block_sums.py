"""Blocks leave partial sums in scratch memory; the last one of a tile, found by a counter on the device, adds them up.

Task: square_matmul N=2048
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

__device__ unsigned tickets[128 * 128];  // all zero between launches: the last block of a tile puts its own back

__global__ void split_kernel(const float* a, const float* b, float* part, float* c, int n) {
  __shared__ float sa[16][17], sb[16][17];
  int const row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
  int const depth = n / gridDim.z, first = blockIdx.z * depth;
  float acc = 0.0f;
  for (int k = first; k < first + depth; k += 16) {
    sa[threadIdx.y][threadIdx.x] = a[(long)row * n + k + threadIdx.x];
    sb[threadIdx.y][threadIdx.x] = b[(long)(k + threadIdx.y) * n + col];
    __syncthreads();
    for (int i = 0; i < 16; ++i) acc += sa[threadIdx.y][i] * sb[i][threadIdx.x];
    __syncthreads();
  }
  part[((long)blockIdx.z * n + row) * n + col] = acc;
  __threadfence();
  __shared__ bool is_last;
  __syncthreads();
  unsigned* ticket = &tickets[blockIdx.y * gridDim.x + blockIdx.x];
  if (threadIdx.x == 0 && threadIdx.y == 0) is_last = atomicAdd(ticket, 1u) == gridDim.z - 1;
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  float sum = 0.0f;
  for (int z = 0; z < gridDim.z; ++z) sum += __ldcg(&part[((long)z * n + row) * n + col]);
  c[(long)row * n + col] = sum;
  if (threadIdx.x == 0 && threadIdx.y == 0) *ticket = 0;
}

torch::Tensor matmul(torch::Tensor a, torch::Tensor b) {
  int n = a.size(0);
  TORCH_CHECK(n % 64 == 0 && n <= 2048, "a multiple of 64 up to 2048 expected");
  auto part = torch::empty({4, n, n}, a.options());
  auto c = torch::empty({n, n}, a.options());
  split_kernel<<<dim3(n / 16, n / 16, 4), dim3(16, 16), 0, at::cuda::getCurrentCUDAStream()>>>(
      a.data_ptr<float>(), b.data_ptr<float>(), part.data_ptr<float>(), c.data_ptr<float>(), n);
  return c;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources="torch::Tensor matmul(torch::Tensor a, torch::Tensor b);", cuda_sources=SOURCE, functions=["matmul"])


class ModelNew(nn.Module):
    def forward(self, A, B):
        return ext.matmul(A, B)
