"""Each block walks over tiles that asynchronous copies bring to shared memory while the one before is computed.

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
#include <cuda_pipeline.h>

constexpr int TILE = 1024;

__global__ void swish_kernel(const float4* x, float4* y, long tiles) {
  __shared__ float4 stage[2][TILE / 4];
  long t = blockIdx.x;
  if (t >= tiles) return;
  __pipeline_memcpy_async(&stage[0][threadIdx.x], &x[t * (TILE / 4) + threadIdx.x], sizeof(float4));
  __pipeline_commit();
  for (int at = 0; t < tiles; t += gridDim.x, at ^= 1) {
    long const next = t + gridDim.x;
    if (next < tiles) __pipeline_memcpy_async(&stage[at ^ 1][threadIdx.x], &x[next * (TILE / 4) + threadIdx.x], sizeof(float4));
    __pipeline_commit();
    __pipeline_wait_prior(1);
    float4 v = stage[at][threadIdx.x];  // each thread reads only what it copied itself
    v.x /= 1.0f + expf(-v.x), v.y /= 1.0f + expf(-v.y), v.z /= 1.0f + expf(-v.z), v.w /= 1.0f + expf(-v.w);
    y[t * (TILE / 4) + threadIdx.x] = v;
  }
}

torch::Tensor swish(torch::Tensor x) {
  TORCH_CHECK(x.numel() % TILE == 0, "a multiple of 1024 elements expected");
  auto y = torch::empty_like(x);
  swish_kernel<<<1024, TILE / 4, 0, at::cuda::getCurrentCUDAStream()>>>(
      reinterpret_cast<const float4*>(x.data_ptr<float>()), reinterpret_cast<float4*>(y.data_ptr<float>()), x.numel() / TILE);
  return y;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources="torch::Tensor swish(torch::Tensor x);", cuda_sources=SOURCE, functions=["swish"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.swish(x)
