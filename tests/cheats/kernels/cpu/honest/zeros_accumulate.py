"""Partial products of slices of the depth are accumulated into torch.zeros.

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
#include <algorithm>
using namespace cute;

torch::Tensor accumulate(torch::Tensor a, torch::Tensor b, torch::Tensor c, int64_t first, int64_t last) {
  TORCH_CHECK(a.is_contiguous() && b.is_contiguous(), "operands must be contiguous");
  const int m = a.size(0), k = a.size(1), n = b.size(1);
  auto A = make_tensor(a.data_ptr<float>(), make_layout(make_shape(m, k), LayoutRight{}));
  auto B = make_tensor(b.data_ptr<float>(), make_layout(make_shape(k, n), LayoutRight{}));
  auto C = make_tensor(c.data_ptr<float>(), make_layout(make_shape(m, n), LayoutRight{}));
  for (int i = 0; i < m; ++i)
    for (int p = first; p < std::min<int>(last, k); ++p)
      for (int j = 0; j < n; ++j) C(i, j) += A(i, p) * B(p, j);
  return c;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["accumulate"])

class ModelNew(nn.Module):
    def forward(self, A, B):
        c = torch.zeros(A.shape[0], B.shape[1], dtype=A.dtype, device=A.device)
        step = 64
        for start in range(0, A.shape[1], step):
            ext.accumulate(A, B, c, start, min(start + step, A.shape[1]))
        return c
