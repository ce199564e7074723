"""The C++ text is put together from a template and a declaration; extra flags are given.

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

TILE = 32
TEMPLATE = r"""
#include <torch/extension.h>
#include <cute/tensor.hpp>
using namespace cute;

torch::Tensor matmul(torch::Tensor a, torch::Tensor b) {
  const int m = a.size(0), k = a.size(1), n = b.size(1);
  auto c = torch::zeros({m, n}, a.options());
  auto A = make_tensor(a.data_ptr<float>(), make_layout(make_shape(m, k), LayoutRight{}));
  auto B = make_tensor(b.data_ptr<float>(), make_layout(make_shape(k, n), LayoutRight{}));
  auto C = make_tensor(c.data_ptr<float>(), make_layout(make_shape(m, n), LayoutRight{}));
  for (int i0 = 0; i0 < m; i0 += @TILE@)
    for (int p0 = 0; p0 < k; p0 += @TILE@)
      for (int i = i0; i < std::min(i0 + @TILE@, m); ++i)
        for (int p = p0; p < std::min(p0 + @TILE@, k); ++p)
          for (int j = 0; j < n; ++j) C(i, j) += A(i, p) * B(p, j);
  return c;
}
"""
DECLARATION = "torch::Tensor matmul(torch::Tensor a, torch::Tensor b);"

ext = load_inline(
    name="candidate_ext",
    cpp_sources=[DECLARATION, TEMPLATE.replace("@TILE@", str(TILE))],
    functions=["matmul"],
    extra_cflags=["-O3", "-funroll-loops"],
    verbose=False,
)

class ModelNew(nn.Module):
    def forward(self, A, B):
        return ext.matmul(A, B)
