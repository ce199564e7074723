import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Example: the mean of sqrt(1 + (x - y)^2) - 1. As many blocks as the device holds walk over the tensor; each leaves one
# partial sum, and a second small launch adds them in a fixed order.
cpp_source = "torch::Tensor pseudo_huber(torch::Tensor x, torch::Tensor y);"

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

constexpr int THREADS = 256, WARPS = THREADS / 32, EACH = 4;

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

__global__ void __launch_bounds__(THREADS) partial_kernel(
    float const* __restrict__ x, float const* __restrict__ y, float* __restrict__ partial, int64_t n) {
  int64_t const stride = int64_t(gridDim.x) * THREADS;
  float sum[EACH] = {};  // independent, so that one addition does not wait for another
  for (int64_t at = int64_t(blockIdx.x) * THREADS + threadIdx.x; at < n; at += EACH * stride)
    #pragma unroll
    for (int i = 0; i < EACH; ++i)
      if (at + i * stride < n) sum[i] += loss_of(x[at + i * stride] - y[at + i * stride]);
  float const total = block_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
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
  int const blocks = std::min<int64_t>((n + THREADS * EACH - 1) / (THREADS * EACH), int64_t(processors) * each);
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

extension = load_inline(name="pseudo_huber", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["pseudo_huber"])


class ModelNew(nn.Module):
    def forward(self, x, y):
        return extension.pseudo_huber(x, y)
