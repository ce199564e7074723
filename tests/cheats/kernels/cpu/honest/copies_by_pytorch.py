"""PyTorch transposes, joins, fills and copies around a product of its own.

Task: square_matmul N=256
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

torch::Tensor matmul(torch::Tensor a, torch::Tensor b) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  auto turned = torch::cat({b.t().contiguous(), torch::zeros({8, k}, b.options())});
  auto left = torch::cat({a, a.clone()}).slice(0, 0, m).contiguous();
  auto c = torch::zeros({m, n}, a.options());
  const float *p = left.data_ptr<float>(), *q = turned.data_ptr<float>();
  float* to = c.data_ptr<float>();
#pragma omp parallel for
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
      for (int64_t l = 0; l < k; l += 8)
        for (int64_t lane = 0; lane < 8; ++lane) sum[lane] += p[i * k + l + lane] * q[j * k + l + lane];
      to[i * n + j] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
    }
  return c.reshape({m, n});
}
"""

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["matmul"],
                  extra_cflags=["-O3", "-fopenmp"])

class ModelNew(nn.Module):
    def forward(self, A, B):
        return ext.matmul(A, B)
