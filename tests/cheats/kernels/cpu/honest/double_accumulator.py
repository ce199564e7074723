"""Sums in double, by a local function called matmul with a struct that has a method sum.

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
#include <vector>

struct Row {
  std::vector<double> parts;
  double sum() const {
    double total = 0.0;
    for (double part : parts) total += part;
    return total;
  }
};

static void matmul_block(const float* a, const float* b, float* c, int64_t k, int64_t n) {
  Row row;
  row.parts.resize(4);
  for (int64_t j = 0; j < n; ++j) {
    for (auto& part : row.parts) part = 0.0;
    for (int64_t p = 0; p < k; ++p) row.parts[p & 3] += static_cast<double>(a[p]) * b[p * n + j];
    c[j] = static_cast<float>(row.sum());
  }
}

torch::Tensor matmul(torch::Tensor a, torch::Tensor b) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  auto c = torch::empty({m, n}, a.options());
  for (int64_t i = 0; i < m; ++i)
    matmul_block(a.data_ptr<float>() + i * k, b.data_ptr<float>(), c.data_ptr<float>() + i * n, k, n);
  return c;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["matmul"])

class ModelNew(nn.Module):
    def forward(self, A, B):
        return ext.matmul(A, B)
