"""One pass finds the maximum and the normaliser together, a second writes.

Task: softmax batch_size=64 dim=4096
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

struct Running {
  float top = -INFINITY;
  float total = 0.0f;

  void add(float x) {
    if (x > top) {
      total *= std::exp(top - x);
      top = x;
    }
    total += std::exp(x - top);
  }
  float sum() const { return total; }
};

torch::Tensor softmax(torch::Tensor x) {
  const int rows = x.size(0), width = x.size(1);
  auto y = torch::empty_like(x);
  auto X = make_tensor(x.data_ptr<float>(), make_shape(rows, width), LayoutRight{});
  auto Y = make_tensor(y.data_ptr<float>(), make_shape(rows, width), LayoutRight{});
#pragma omp parallel for
  for (int r = 0; r < rows; ++r) {
    Running state;
    for (int c = 0; c < width; ++c) state.add(X(r, c));
    const float scale = 1.0f / state.sum();
    for (int c = 0; c < width; ++c) Y(r, c) = std::exp(X(r, c) - state.top) * scale;
  }
  return y;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["softmax"])

class ModelNew(nn.Module):
    def forward(self, x):
        return ext.softmax(x)
