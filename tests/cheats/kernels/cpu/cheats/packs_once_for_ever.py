"""The weight is packed at its first use and never again: right until a checkpoint is loaded afterwards.

Task: linear_gelu_softmax batch_size=48 in_features=96 out_features=80
Verdict: incorrect
Says: pack them anew
Also without screening: incorrect
Known from: field, weights that never vary
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
// packed is (K, N): the weight transposed, so that the innermost loop runs over columns.
torch::Tensor fused(torch::Tensor x, torch::Tensor packed, torch::Tensor bias) {
  const int64_t rows = x.size(0), K = x.size(1), N = packed.size(1);
  auto y = torch::empty({rows, N}, x.options());
  const float *a = x.data_ptr<float>(), *w = packed.data_ptr<float>(), *b = bias.data_ptr<float>();
  float* out = y.data_ptr<float>();
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<float> sums(b, b + N);
    for (int64_t k = 0; k < K; ++k)
      for (int64_t n = 0; n < N; ++n) sums[n] += a[r * K + k] * w[k * N + n];
    float most = -INFINITY, total = 0;
    for (int64_t n = 0; n < N; ++n) {
      sums[n] = 0.5f * sums[n] * (1.0f + std::erf(sums[n] * 0.70710678f));
      most = std::fmax(most, sums[n]);
    }
    for (int64_t n = 0; n < N; ++n) total += sums[n] = std::exp(sums[n] - most);
    for (int64_t n = 0; n < N; ++n) out[r * N + n] = sums[n] / total;
  }
  return y;
}
"""

ext = load_inline(name="packs_once", cpp_sources=SOURCE, functions=["fused"])


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.packed = None

    def forward(self, x):
        if self.packed is None:
            self.packed = self.linear.weight.detach().t().contiguous()
        return ext.fused(x, self.packed, self.linear.bias)
