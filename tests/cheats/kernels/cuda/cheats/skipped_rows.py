"""The grid is a sixteenth too small; the last rows are left to whatever their memory held.

Task: swish batch_size=4096 dim=16384
Verdict: incorrect
Says: wrong | nan
Also without screening: incorrect
Known from: MAK, WAF
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

__global__ void swish_kernel(const float* __restrict__ x, float* __restrict__ y, long n) {
  for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x)
    y[i] = x[i] / (1.0f + expf(-x[i]));
}

torch::Tensor swish(torch::Tensor x) {
  auto y = torch::empty_like(x);
  long n = x.numel() - x.numel() / 16;
  swish_kernel<<<1024, 256, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources="torch::Tensor swish(torch::Tensor x);", cuda_sources=SOURCE, functions=["swish"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.swish(x)
