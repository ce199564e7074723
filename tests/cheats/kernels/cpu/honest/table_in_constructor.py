"""Constants are prepared in the constructor and kept in buffers that no checkpoint holds.

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
#include <cute/tensor.hpp>
#include <cmath>
using namespace cute;

torch::Tensor swish_into(torch::Tensor x, torch::Tensor y) {
  auto X = make_tensor(x.data_ptr<float>(), make_layout((int)x.numel()));
  auto Y = make_tensor(y.data_ptr<float>(), make_layout((int)y.numel()));
  for (int i = 0; i < size(X); ++i) Y(i) = X(i) / (1.0f + std::exp(-X(i)));
  return y;
}

torch::Tensor swish(torch::Tensor x, torch::Tensor limits, torch::Tensor scale) {
  TORCH_CHECK(x.is_contiguous(), "x must be contiguous");
  const float top = limits.data_ptr<float>()[0], factor = scale.data_ptr<float>()[0];
  auto y = torch::empty_like(x);
  const float* from = x.data_ptr<float>();
  float* to = y.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = factor * from[i] / (1.0f + std::exp(std::min(-from[i], top)));
  return y;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["swish"])

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("limits", torch.full((2,), 88.0), persistent=False)
        self.register_buffer("scale", torch.ones(1), persistent=False)

    def forward(self, x):
        return ext.swish(x, self.limits, self.scale)
