"""K is split among blocks that add to the result with atomics, so the order of additions changes from call to call.

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

__global__ void split_kernel(const float* a, const float* b, float* c, int n) {
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
  atomicAdd(&c[(long)row * n + col], acc);
}

torch::Tensor matmul(torch::Tensor a, torch::Tensor b) {
  int n = a.size(0);
  TORCH_CHECK(n % 64 == 0, "a multiple of 64 expected");
  auto c = torch::zeros({n, n}, a.options());
  split_kernel<<<dim3(n / 16, n / 16, 4), dim3(16, 16), 0, at::cuda::getCurrentCUDAStream()>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), n);
  return c;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources="torch::Tensor matmul(torch::Tensor a, torch::Tensor b);", cuda_sources=SOURCE, functions=["matmul"])


class ModelNew(nn.Module):
    def forward(self, A, B):
        return ext.matmul(A, B)
