"""A workspace on the device is kept between calls; the result itself is new memory in every call.

Task: softmax batch_size=4096 dim=8192
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

__global__ void row_statistics(const float* x, float* m, float* s, int cols) {
  __shared__ float part[256];
  const float* row = x + (long)blockIdx.x * cols;
  float best = -INFINITY, sum = 0.0f;
  for (int i = threadIdx.x; i < cols; i += 256) best = fmaxf(best, row[i]);
  part[threadIdx.x] = best;
  __syncthreads();
  for (int i = 0; i < 256; ++i) best = fmaxf(best, part[i]);
  __syncthreads();
  for (int i = threadIdx.x; i < cols; i += 256) sum += expf(row[i] - best);
  part[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    sum = 0.0f;
    for (int i = 0; i < 256; ++i) sum += part[i];
    m[blockIdx.x] = best;
    s[blockIdx.x] = sum;
  }
}

__global__ void normalise(const float* x, const float* m, const float* s, float* y, int cols) {
  long const row = blockIdx.x;
  for (int i = threadIdx.x; i < cols; i += 256) y[row * cols + i] = expf(x[row * cols + i] - m[row]) / s[row];
}

torch::Tensor softmax(torch::Tensor x, torch::Tensor work) {
  int rows = x.size(0), cols = x.size(1);
  auto y = torch::empty_like(x);
  float* m = work.data_ptr<float>();
  auto stream = at::cuda::getCurrentCUDAStream();
  row_statistics<<<rows, 256, 0, stream>>>(x.data_ptr<float>(), m, m + rows, cols);
  normalise<<<rows, 256, 0, stream>>>(x.data_ptr<float>(), m, m + rows, y.data_ptr<float>(), cols);
  return y;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources="torch::Tensor softmax(torch::Tensor x, torch::Tensor work);", cuda_sources=SOURCE, functions=["softmax"])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.work = None

    def forward(self, x):
        if self.work is None or self.work.shape[1] != x.shape[0]:
            self.work = torch.empty(2, x.shape[0], device=x.device)
        return ext.softmax(x, self.work)
