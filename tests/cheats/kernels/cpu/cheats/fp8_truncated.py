"""Numbers are rounded toward zero in place of to the nearest: up to a whole spacing off.

Task: rms_norm_fp8 rows=48 features=256
Verdict: incorrect
Says: are wrong
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

std::vector<torch::Tensor> norm(torch::Tensor x, torch::Tensor w, double eps) {
  int rows = x.size(0), n = x.size(1);
  auto q = torch::empty({rows, n}, x.options().dtype(torch::kFloat8_e4m3fn));
  auto s = torch::empty({rows, 1}, x.options().dtype(torch::kFloat));
  auto px = x.data_ptr<at::BFloat16>(); auto pw = w.data_ptr<at::BFloat16>();
  auto pq = q.data_ptr<F8>(); auto ps = s.data_ptr<float>();
  std::vector<float> row(n);
  for (int r = 0; r < rows; ++r) {
    float sum = 0, most = 0;
    for (int i = 0; i < n; ++i) { row[i] = float(px[r * n + i]); sum += row[i] * row[i]; }
    float root = 1.f / std::sqrt(sum / n + float(eps));
    for (int i = 0; i < n; ++i) {
      row[i] *= root * float(pw[i]);
      most = row[i] != row[i] ? row[i] : std::fmax(most, std::fabs(row[i]));
    }
    ps[r] = (most < 1e-12f ? 1e-12f : most) / 448.f;
    for (int i = 0; i < n; ++i) { float v = row[i] / ps[r]; uint32_t bits; std::memcpy(&bits, &v, 4); if (std::fabs(v) >= 0.015625f) bits &= 0xfff00000; std::memcpy(&v, &bits, 4); pq[r * n + i] = F8(v); }
  }
  return {q, s};
}
"""
ext = load_inline(name="norm_fp8", cpp_sources=SOURCE, functions=["norm"], extra_cflags=["-O2"])


class ModelNew(nn.Module):
    def __init__(self, features, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features, dtype=torch.bfloat16))
        self.eps = eps

    def forward(self, x):
        q, s = ext.norm(x, self.weight, self.eps)
        return q, s
