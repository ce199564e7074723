"""FP8 product whose sums of 32 terms are added up in float32, as tensor cores do it.

Task: fp8_matmul M=48 K=160 N=32
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
using F8 = at::Float8_e4m3fn;
torch::Tensor product(torch::Tensor a, torch::Tensor b, torch::Tensor sa, torch::Tensor sb) {
  int m = a.size(0), k = a.size(1), n = b.size(0);
  auto c = torch::empty({m, n}, a.options().dtype(torch::kBFloat16));
  auto pa = a.data_ptr<F8>(); auto pb = b.data_ptr<F8>(); auto pc = c.data_ptr<at::BFloat16>();
  float scale = sa.data_ptr<float>()[0] * sb.data_ptr<float>()[0];
  std::vector<float> wa(m * k), wb(n * k);
  for (int i = 0; i < m * k; ++i) wa[i] = float(pa[i]);
  for (int i = 0; i < n * k; ++i) wb[i] = float(pb[i]);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int p = 0; p < k; p += 32) {
        float part = 0;
        for (int t = p; t < std::min(p + 32, k); ++t) part += wa[i * k + t] * wb[j * k + t];
        sum += part;
      }
      pc[i * n + j] = at::BFloat16(sum * scale);
    }
  return c;
}
"""
ext = load_inline(name="product_fp8", cpp_sources=SOURCE, functions=["product"], extra_cflags=["-O2"])


class ModelNew(nn.Module):
    def forward(self, A, B, scale_a, scale_b):
        return ext.product(A, B, scale_a, scale_b)
