"""A static buffer in the library is scratch memory that grows when needed.

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
#include <cmath>
#include <vector>

torch::Tensor softmax(torch::Tensor x) {
  static thread_local std::vector<float> row;
  const int64_t rows = x.size(0), width = x.size(1);
  if (static_cast<int64_t>(row.size()) < width) row.resize(width);
  auto y = torch::empty_like(x);
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = x.data_ptr<float>() + r * width;
    float* to = y.data_ptr<float>() + r * width;
    float top = from[0], total = 0.0f;
    for (int64_t c = 1; c < width; ++c) top = std::fmax(top, from[c]);
    for (int64_t c = 0; c < width; ++c) total += row[c] = std::exp(from[c] - top);
    const float inverse = 1.0f / total;
    for (int64_t c = 0; c < width; ++c) to[c] = row[c] * inverse;
  }
  return y;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["softmax"])

class ModelNew(nn.Module):
    def forward(self, x):
        return ext.softmax(x)
