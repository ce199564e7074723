"""The blocks of a cluster exchange maxima and sums through each other's shared memory.

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
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__device__ float over_block(float v, bool is_max, float* part) {
  part[threadIdx.x] = v;
  __syncthreads();
  for (int o = 128; o > 0; o /= 2) {
    if (threadIdx.x < o) part[threadIdx.x] = is_max ? fmaxf(part[threadIdx.x], part[threadIdx.x + o]) : part[threadIdx.x] + part[threadIdx.x + o];
    __syncthreads();
  }
  v = part[0];
  __syncthreads();
  return v;
}

__global__ void __cluster_dims__(4, 1, 1) softmax_kernel(const float* x, float* y, int cols) {
  __shared__ float part[256], mine[2];
  auto cluster = cg::this_cluster();
  int const piece = (cols + 3) / 4, from = cluster.block_rank() * piece, to = min(from + piece, cols);
  const float* row = x + (long)(blockIdx.x / 4) * cols;
  float* out = y + (long)(blockIdx.x / 4) * cols;
  float m = -INFINITY, s = 0.0f;
  for (int i = from + threadIdx.x; i < to; i += 256) m = fmaxf(m, row[i]);
  m = over_block(m, true, part);
  if (threadIdx.x == 0) mine[0] = m;
  cluster.sync();
  for (int r = 0; r < 4; ++r) m = fmaxf(m, *cluster.map_shared_rank(&mine[0], r));
  for (int i = from + threadIdx.x; i < to; i += 256) s += expf(row[i] - m);
  s = over_block(s, false, part);
  if (threadIdx.x == 0) mine[1] = s;
  cluster.sync();
  s = 0.0f;
  for (int r = 0; r < 4; ++r) s += *cluster.map_shared_rank(&mine[1], r);
  cluster.sync();
  for (int i = from + threadIdx.x; i < to; i += 256) out[i] = expf(row[i] - m) / s;
}

torch::Tensor softmax(torch::Tensor x) {
  auto y = torch::empty_like(x);
  softmax_kernel<<<x.size(0) * 4, 256, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources="torch::Tensor softmax(torch::Tensor x);", cuda_sources=SOURCE, functions=["softmax"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.softmax(x)
