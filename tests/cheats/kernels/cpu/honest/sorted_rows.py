"""The largest of each row by std::sort of a copy.

Task: top_k batch_size=16 length=4096
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
#include <algorithm>
#include <functional>
#include <vector>

torch::Tensor largest(torch::Tensor x) {
  const int64_t rows = x.size(0), width = x.size(1);
  auto y = torch::empty({rows, 8}, x.options());
  std::vector<float> row(width);
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = x.data_ptr<float>() + r * width;
    std::copy(from, from + width, row.begin());
    std::sort(row.begin(), row.end(), [](float a, float b) { return b == b && (a != a || a > b); });
    std::copy(row.begin(), row.begin() + 8, y.data_ptr<float>() + r * 8);
  }
  return y;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["largest"])

class ModelNew(nn.Module):
    def forward(self, x):
        return ext.largest(x)
