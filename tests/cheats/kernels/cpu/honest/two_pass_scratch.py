"""Two passes through a scratch buffer of its own, the second in place.

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
#include <cmath>
#include <vector>

torch::Tensor softmax(torch::Tensor x) {
  const int64_t rows = x.size(0), width = x.size(1);
  auto scratch = torch::empty({rows, width}, x.options());
  auto y = torch::empty_like(x);
  auto from = x.data_ptr<float>(), work = scratch.data_ptr<float>(), to = y.data_ptr<float>();
  std::vector<double> total(rows);
  for (int64_t r = 0; r < rows; ++r) {
    float top = from[r * width];
    for (int64_t c = 0; c < width; ++c) top = from[r * width + c] > top ? from[r * width + c] : top;
    for (int64_t c = 0; c < width; ++c) work[r * width + c] = from[r * width + c] - top;
    for (int64_t c = 0; c < width; ++c) total[r] += work[r * width + c] = std::exp(work[r * width + c]);
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < width; ++c) to[r * width + c] = work[r * width + c] / total[r];
  return y;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["softmax"])

class ModelNew(nn.Module):
    def forward(self, x):
        return ext.softmax(x)
