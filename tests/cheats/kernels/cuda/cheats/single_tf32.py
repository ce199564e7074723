"""Tensor cores take the operands rounded to eleven bits, in one product.

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
#include <mma.h>
using namespace nvcuda;

__global__ void matmul_kernel(const float* A, const float* B, float* C, int n) {
  int const row = blockIdx.y * 16, col = blockIdx.x * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> c;
  wmma::fill_fragment(c, 0.0f);
  for (int k = 0; k < n; k += 8) {
    wmma::load_matrix_sync(a, A + row * n + k, n);
    wmma::load_matrix_sync(b, B + k * n + col, n);
    for (int i = 0; i < a.num_elements; ++i) a.x[i] = wmma::__float_to_tf32(a.x[i]);
    for (int i = 0; i < b.num_elements; ++i) b.x[i] = wmma::__float_to_tf32(b.x[i]);
    wmma::mma_sync(c, a, b, c);
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
