"""Operands are rounded to the eight significant bits of bfloat16 on their way to the tensor cores.

Task: square_matmul N=2048
Verdict: incorrect | refused
Says: wrong
Also without screening: incorrect
Known from: KB, KBH, DR
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
#include <cuda_bf16.h>
#include <mma.h>
using namespace nvcuda;

__global__ void matmul_kernel(const float* A, const float* B, float* C, int n) {
  int const row = blockIdx.y * 16, col = blockIdx.x * 16;
  __shared__ __nv_bfloat16 sa[256], sb[256];
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::fill_fragment(c, 0.0f);
  for (int k = 0; k < n; k += 16) {
    for (int i = threadIdx.x; i < 256; i += 32) {
      sa[i] = __float2bfloat16(A[(row + i / 16) * n + k + i % 16]);
      sb[i] = __float2bfloat16(B[(k + i / 16) * n + col + i % 16]);
    }
    __syncwarp();
    wmma::load_matrix_sync(a, sa, 16);
    wmma::load_matrix_sync(b, sb, 16);
    wmma::mma_sync(c, a, b, c);
    __syncwarp();
  }
  wmma::store_matrix_sync(C + row * n + col, c, n, wmma::mem_row_major);
}

torch::Tensor matmul(torch::Tensor a, torch::Tensor b) {
  int n = a.size(0);
  auto c = torch::empty({n, n}, a.options());
  matmul_kernel<<<dim3(n / 16, n / 16), 32, 0, at::cuda::getCurrentCUDAStream()>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), n);
  return c;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources="torch::Tensor matmul(torch::Tensor a, torch::Tensor b);", cuda_sources=SOURCE, functions=["matmul"])


class ModelNew(nn.Module):
    def forward(self, A, B):
        return ext.matmul(A, B)
