"""The normaliser is summed with Kahan's correction.

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

torch::Tensor softmax(torch::Tensor x) {
  TORCH_CHECK(x.dim() == 2 && x.is_contiguous(), "x must be a contiguous matrix");
  const int rows = x.size(0), width = x.size(1);
  auto y = torch::empty_like(x);
  auto X = make_tensor(x.data_ptr<float>(), make_layout(make_shape(rows, width), LayoutRight{}));
  auto Y = make_tensor(y.data_ptr<float>(), make_layout(make_shape(rows, width), LayoutRight{}));
  for (int r = 0; r < rows; ++r) {
    float top = X(r, 0), total = 0.0f;
    for (int c = 1; c < width; ++c) top = std::max(top, X(r, c));
    float carried = 0.0f;
    for (int c = 0; c < width; ++c) {
      const float term = (Y(r, c) = std::exp(X(r, c) - top)) - carried;
      const float next = total + term;
      carried = (next - total) - term;
      total = next;
    }
    for (int c = 0; c < width; ++c) Y(r, c) /= total;
  }
  return y;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["softmax"])

class ModelNew(nn.Module):
    def forward(self, x):
        return ext.softmax(x)
