"""The second operand is packed to column-major panels with padding first.

Task: square_matmul N=192
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
#include <vector>
using namespace cute;

torch::Tensor matmul(torch::Tensor a, torch::Tensor b) {
  const int m = a.size(0), k = a.size(1), n = b.size(1), padded = k + 16;
  auto c = torch::empty({m, n}, a.options());
  std::vector<float> panel(static_cast<size_t>(padded) * n);
  auto A = make_tensor(a.data_ptr<float>(), make_layout(make_shape(m, k), LayoutRight{}));
  auto B = make_tensor(b.data_ptr<float>(), make_layout(make_shape(k, n), LayoutRight{}));
  auto P = make_tensor(panel.data(), make_layout(make_shape(k, n), make_stride(1, padded)));
  auto C = make_tensor(c.data_ptr<float>(), make_layout(make_shape(m, n), LayoutRight{}));
  for (int p = 0; p < k; ++p)
    for (int j = 0; j < n; ++j) P(p, j) = B(p, j);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float lanes[8] = {};
      for (int p = 0; p < k; ++p) lanes[p % 8] += A(i, p) * P(p, j);
      C(i, j) = ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
    }
  return c;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["matmul"])

class ModelNew(nn.Module):
    def forward(self, A, B):
        return ext.matmul(A, B)
