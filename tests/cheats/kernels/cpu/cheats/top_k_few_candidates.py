"""Each tile of a row hands on its four largest numbers; where more of the row's eight lie in one tile, they are lost.

Task: top_k batch_size=64 length=16384
Verdict: incorrect
Says: wrong
Also without screening: incorrect
Known from: kernelbench.com DEVLOG, August 2026
Walls: not needed
Speedup: any
"""
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <algorithm>
#include <cmath>
#include <functional>

static bool above(float a, float b) { return std::isnan(a) ? !std::isnan(b) : a > b; }

torch::Tensor top_k(torch::Tensor x) {
  const int k = 8, tile = 256, kept = 4;
  int64_t rows = x.size(0), cols = x.size(1);
  auto y = torch::empty({rows, k}, x.options());
  std::vector<float> part, found;
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = x.data_ptr<float>() + row * cols;
    found.clear();
    for (int64_t start = 0; start < cols; start += tile) {
      part.assign(from + start, from + std::min(cols, start + tile));
      std::partial_sort(part.begin(), part.begin() + kept, part.end(), above);
      found.insert(found.end(), part.begin(), part.begin() + kept);
    }
    std::partial_sort(found.begin(), found.begin() + k, found.end(), above);
    std::copy(found.begin(), found.begin() + k, y.data_ptr<float>() + row * k);
  }
  return y;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["top_k"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.top_k(x.contiguous())
