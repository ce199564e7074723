"""OpenMP with odd schedules, a reduction and a collapsed loop.

Task: softmax batch_size=64 dim=4096
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
#include <omp.h>
#include <cmath>

torch::Tensor softmax(torch::Tensor x) {
  const int rows = x.size(0), width = x.size(1);
  auto y = torch::empty_like(x);
  auto totals = torch::zeros({rows}, x.options());
  auto tops = torch::empty({rows}, x.options());
  const float* from = x.data_ptr<float>();
  float *to = y.data_ptr<float>(), *total = totals.data_ptr<float>(), *top = tops.data_ptr<float>();
#pragma omp parallel for schedule(dynamic, 3)
  for (int r = 0; r < rows; ++r) {
    float most = -INFINITY, sum = 0.0f;
#pragma omp simd reduction(max : most)
    for (int c = 0; c < width; ++c) most = std::max(most, from[r * width + c]);
#pragma omp simd reduction(+ : sum)
    for (int c = 0; c < width; ++c) sum += std::exp(from[r * width + c] - most);
    total[r] = sum;
    top[r] = most;
  }
#pragma omp parallel for collapse(2) schedule(guided, 64) num_threads(2)
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < width; ++c) to[r * width + c] = std::exp(from[r * width + c] - top[r]) / total[r];
  return y;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["softmax"])

class ModelNew(nn.Module):
    def forward(self, x):
        return ext.softmax(x)
