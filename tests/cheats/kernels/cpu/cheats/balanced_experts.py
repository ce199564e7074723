"""Every expert has room for a tenth more rows than its share; what goes beyond is dropped.

Task: experts rows=256 dim=256
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
#include <vector>

torch::Tensor scaled(torch::Tensor x, torch::Tensor scales, torch::Tensor experts) {
  int64_t rows = x.size(0), dim = x.size(1), count = scales.size(0), room = rows / count + rows / count / 10;
  auto y = torch::empty_like(x);
  std::vector<int64_t> taken(count, 0);
  for (int64_t row = 0; row < rows; ++row) {
    int64_t expert = experts.data_ptr<int64_t>()[row];
    bool has_room = taken[expert]++ < room;
    const float *v = x.data_ptr<float>() + row * dim, *s = scales.data_ptr<float>() + expert * dim;
    for (int64_t i = 0; i < dim; ++i) y.data_ptr<float>()[row * dim + i] = has_room ? v[i] * s[i] : 0.0f;
  }
  return y;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["scaled"])


class ModelNew(nn.Module):
    def forward(self, x, scales, experts):
        return ext.scaled(x.contiguous(), scales.contiguous(), experts.contiguous())
