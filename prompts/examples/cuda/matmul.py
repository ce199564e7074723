import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Example: y = A @ x, a matrix times a vector, a tile of rows per block, tiles of x staged in shared memory.
cpp_source = "torch::Tensor matvec(torch::Tensor A, torch::Tensor x);"

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <cute/tensor.hpp>

using namespace cute;

constexpr int BM = 8;     // rows of one tile, one per warp
constexpr int BK = 1024;  // columns of one tile

__global__ void matvec_kernel(float const* A, float const* x, float* y, int M, int K) {
  Tensor mA = make_tensor(make_gmem_ptr(A), make_shape(M, K), make_stride(int64_t(K), _1{}));
  Tensor mX = make_tensor(make_gmem_ptr(x), make_shape(K));
  Tensor mY = make_tensor(make_gmem_ptr(y), make_shape(M));
  __shared__ float smem[BK];
  Tensor sX = make_tensor(make_smem_ptr(smem), Layout<Shape<Int<BK>>>{});
  int const m = blockIdx.x * BM + threadIdx.x / 32, lane = threadIdx.x % 32;
  float acc = 0.0f;
  for (int k0 = 0; k0 < K; k0 += BK) {
    for (int k = threadIdx.x; k < BK; k += BM * 32) sX(k) = k0 + k < K ? mX(k0 + k) : 0.0f;
    __syncthreads();
    if (m < M)
      for (int k = lane; k < BK && k0 + k < K; k += 32) acc += mA(m, k0 + k) * sX(k);
    __syncthreads();  // all have read the tile before the next one is written over it
  }
  for (int o = 16; o > 0; o >>= 1) acc += __shfl_xor_sync(0xffffffffu, acc, o);
  if (m < M && lane == 0) mY(m) = acc;
}

torch::Tensor matvec(torch::Tensor A, torch::Tensor x) {
  TORCH_CHECK(A.is_contiguous() && x.is_contiguous(), "expected contiguous tensors");
  int const M = A.size(0), K = A.size(1);
  auto y = torch::empty({M}, x.options());
  if (M == 0) return y;
  matvec_kernel<<<(M + BM - 1) / BM, BM * 32, 0, at::cuda::getCurrentCUDAStream()>>>(
      A.data_ptr<float>(), x.data_ptr<float>(), y.data_ptr<float>(), M, K);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""

extension = load_inline(name="matvec", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["matvec"])


class ModelNew(nn.Module):
    def forward(self, A, x):
        return extension.matvec(A, x)
