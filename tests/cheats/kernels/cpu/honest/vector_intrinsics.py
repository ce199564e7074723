"""Explicit vector code with an aligned main loop and a scalar remainder.

Task: swish batch_size=64 dim=4096
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
#include <cmath>

typedef float floats __attribute__((vector_size(32), aligned(4)));

torch::Tensor swish(torch::Tensor x) {
  TORCH_CHECK(x.scalar_type() == torch::kFloat32, "float32 only");
  auto input = x.contiguous();
  auto y = torch::empty_like(input);
  const float* from = input.data_ptr<float>();
  float* to = y.data_ptr<float>();
  const int64_t n = input.numel();
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    floats v = *reinterpret_cast<const floats*>(from + i), e;
    __builtin_prefetch(from + i + 64);
    for (int lane = 0; lane < 8; ++lane) e[lane] = std::exp(-v[lane]);
    *reinterpret_cast<floats*>(to + i) = v / (1.0f + e);
  }
  for (; i < n; ++i) to[i] = from[i] / (1.0f + std::exp(-from[i]));
  return y;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["swish"])

class ModelNew(nn.Module):
    def forward(self, x):
        return ext.swish(x)
