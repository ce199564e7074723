"""NaN among the operands counts as zero.

Task: fp8_product
Verdict: incorrect
Says: nan
Also without screening: incorrect
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
using F8 = at::Float8_e4m3fn;
torch::Tensor product(torch::Tensor a, torch::Tensor b) {
  int m = a.size(0), k = a.size(1), n = b.size(0);
  auto c = torch::empty({m, n}, a.options().dtype(torch::kBFloat16));
  auto pa = a.data_ptr<F8>(); auto pb = b.data_ptr<F8>(); auto pc = c.data_ptr<at::BFloat16>();
  std::vector<float> wa(m * k), wb(n * k);
  for (int i = 0; i < m * k; ++i) { float v = float(pa[i]); wa[i] = v == v ? v : 0.f; }
  for (int i = 0; i < n * k; ++i) { float v = float(pb[i]); wb[i] = v == v ? v : 0.f; }
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int p = 0; p < k; ++p) sum += wa[i * k + p] * wb[j * k + p];
      pc[i * n + j] = at::BFloat16(sum);
    }
  return c;
}
"""
ext = load_inline(name="product_fp8", cpp_sources=SOURCE, functions=["product"], extra_cflags=["-O2"])


class ModelNew(nn.Module):
    def forward(self, A, B):
        return ext.product(A, B)
