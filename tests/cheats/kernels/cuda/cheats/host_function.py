"""The kernel is started by a host function that the stream runs after the call has returned.

Task: swish batch_size=4096 dim=16384
Verdict: refused
Says: stream | cudaLaunchHostFunc
Also without screening: refused | incorrect | runtime_error
Known from: SOL, own
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

struct Order { const float* x; float* y; long n; };

void later(void* what) {
  Order* order = static_cast<Order*>(what);
  swish_kernel<<<1024, 256, 0, 0>>>(order->x, order->y, order->n);
  delete order;
}

torch::Tensor swish(torch::Tensor x) {
  auto y = torch::empty_like(x);
  cudaLaunchHostFunc(at::cuda::getCurrentCUDAStream(), later, new Order{x.data_ptr<float>(), y.data_ptr<float>(), x.numel()});
  return y;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources="torch::Tensor swish(torch::Tensor x);", cuda_sources=SOURCE, functions=["swish"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.swish(x)
