"""Two kernels in a row: the second one works in place on the result of the first.

Task: swish batch_size=4096 dim=16384
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

__global__ void gate_kernel(const float* x, float* y, long n) {
  for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x) y[i] = 1.0f / (1.0f + expf(-x[i]));
}

__global__ void multiply_kernel(const float* x, float* y, long n) {
  for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x) y[i] *= x[i];
}

torch::Tensor swish(torch::Tensor x) {
  auto y = torch::empty_like(x);
  auto stream = at::cuda::getCurrentCUDAStream();
  gate_kernel<<<1024, 256, 0, stream>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  multiply_kernel<<<1024, 256, 0, stream>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources="torch::Tensor swish(torch::Tensor x);", cuda_sources=SOURCE, functions=["swish"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.swish(x)
