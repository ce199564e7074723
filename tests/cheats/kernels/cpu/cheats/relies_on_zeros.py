"""Adds to its output, and relies on somebody else having filled it with zeros.

Task: swish batch_size=64 dim=4096
Verdict: incorrect
Says: wrong | nan | memory
Also without screening: incorrect
Known from: atrex 5
Walls: not needed
Speedup: any
"""
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor swish(torch::Tensor x) {
  auto y = torch::empty_like(x);
  for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] += x.data_ptr<float>()[i] / (1.0f + std::exp(-x.data_ptr<float>()[i]));
  return y;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["swish"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.swish(x.contiguous())
