"""RMS norm in FP8 that rounds to nearest even by the bits of the number, with no conversion of PyTorch's.

Task: rms_norm_fp8 rows=48 features=256
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

static uint8_t rounded(float v) {
  uint32_t bits, sign; std::memcpy(&bits, &v, 4); sign = bits >> 24 & 0x80; bits &= 0x7fffffff;
  if (bits > 0x7f800000) return uint8_t(sign | 0x7f);
  float size; std::memcpy(&size, &bits, 4);
  if (size >= 448.f) return uint8_t(sign | 0x7e);
  if (size < 0.015625f) return uint8_t(sign | uint32_t(std::nearbyint(size * 512.f)));
  bits += 0x7ffff + (bits >> 20 & 1);
  return uint8_t(sign | ((bits >> 20) - (120 << 3)));
}
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
    for (int i = 0; i < n; ++i) reinterpret_cast<uint8_t*>(pq)[r * n + i] = rounded(row[i] / ps[r]);
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
