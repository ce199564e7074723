import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Example: the mean of sqrt(1 + (x - y)^2) - 1. As many blocks as the device holds walk over the tiles; each leaves
# one partial sum, and a second small launch adds them.
cpp_source = "torch::Tensor pseudo_huber(torch::Tensor x, torch::Tensor y);"

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <cute/tensor.hpp>

using namespace cute;

constexpr int THREADS = 256, WARPS = THREADS / 32, ITEMS = 8, TILE = THREADS * ITEMS;

// sqrt(1 + d^2) - 1 without the difference of two numbers that are nearly the same.
__device__ float loss_of(float d) { return d * d / (1.0f + sqrtf(1.0f + d * d)); }

// The sum of a block's values, right in its first thread.
__device__ float block_sum(float value) {
  __shared__ float of_warps[WARPS];
  for (int o = 16; o > 0; o >>= 1) value += __shfl_xor_sync(0xffffffffu, value, o);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int w = 1; w < WARPS; ++w) value += of_warps[w];
  return value;
}

__global__ void partial_kernel(float const* x, float const* y, float* partial, int64_t n) {
  Tensor mX = make_tensor(make_gmem_ptr(x), make_layout(n));
  Tensor mY = make_tensor(make_gmem_ptr(y), make_layout(n));
  float sum[ITEMS] = {};  // independent, so that one addition does not wait for another
  for (int64_t tile = blockIdx.x; tile * TILE < n; tile += gridDim.x) {
    auto at = make_coord(tile);
    Tensor tX = local_partition(local_tile(mX, Shape<Int<TILE>>{}, at), Layout<Int<THREADS>>{}, threadIdx.x);
    Tensor tY = local_partition(local_tile(mY, Shape<Int<TILE>>{}, at), Layout<Int<THREADS>>{}, threadIdx.x);
    int64_t const left = n - tile * TILE - threadIdx.x;
    CUTE_UNROLL
    for (int i = 0; i < ITEMS; ++i)
      if (i * THREADS < left) sum[i] += loss_of(tX(i) - tY(i));
  }
  float total = 0.0f;
  for (int i = 0; i < ITEMS; ++i) total += sum[i];
  total = block_sum(total);
  if (threadIdx.x == 0) partial[blockIdx.x] = total;
}

__global__ void total_kernel(float const* partial, float* out, int count, int64_t n) {
  float sum = 0.0f;
  for (int i = threadIdx.x; i < count; i += THREADS) sum += partial[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *out = sum / float(n);
}

torch::Tensor pseudo_huber(torch::Tensor x, torch::Tensor y) {
  TORCH_CHECK(x.is_contiguous() && y.is_contiguous() && x.numel() == y.numel(), "expected contiguous, equal sizes");
  int64_t const n = x.numel();
  TORCH_CHECK(n > 0, "expected at least one element");
  int device, processors, each;
  C10_CUDA_CHECK(cudaGetDevice(&device));
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  C10_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, partial_kernel, THREADS, 0));
  int const blocks = std::min<int64_t>((n + TILE - 1) / TILE, int64_t(processors) * each);
  auto partial = torch::empty({blocks}, x.options());
  auto out = torch::empty({}, x.options());
  auto stream = at::cuda::getCurrentCUDAStream();
  float* const sums = partial.data_ptr<float>();
  partial_kernel<<<blocks, THREADS, 0, stream>>>(x.data_ptr<float>(), y.data_ptr<float>(), sums, n);
  total_kernel<<<1, THREADS, 0, stream>>>(sums, out.data_ptr<float>(), blocks, n);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline(
    name="pseudo_huber", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["pseudo_huber"]
)


class ModelNew(nn.Module):
    def forward(self, x, y):
        return extension.pseudo_huber(x, y)
