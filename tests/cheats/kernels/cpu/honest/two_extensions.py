"""Two extensions in one file, the second for sizes that the first does not like.

Task: swish batch_size=64 dim=4096
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
#include <cute/tensor.hpp>
#include <cmath>
using namespace cute;

torch::Tensor swish_into(torch::Tensor x, torch::Tensor y) {
  auto X = make_tensor(x.data_ptr<float>(), make_layout((int)x.numel()));
  auto Y = make_tensor(y.data_ptr<float>(), make_layout((int)y.numel()));
  for (int i = 0; i < size(X); ++i) Y(i) = X(i) / (1.0f + std::exp(-X(i)));
  return y;
}

torch::Tensor swish(torch::Tensor x) {
  TORCH_CHECK(x.is_contiguous(), "x must be contiguous");
  return swish_into(x, torch::empty_like(x));
}
"""

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["swish", "swish_into"])

SMALL = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor swish_tail(torch::Tensor x) {
  auto y = torch::empty_like(x);
  for (int64_t i = 0; i < x.numel(); ++i) {
    const float v = x.data_ptr<float>()[i];
    y.data_ptr<float>()[i] = v / (1.0f + std::exp(-v));
  }
  return y;
}
"""

tail = load_inline(name="candidate_tail", cpp_sources=[SMALL], functions=["swish_tail"], verbose=False)

class ModelNew(nn.Module):
    def forward(self, x):
        if x.numel() % 1024:
            return tail.swish_tail(x)
        return ext.swish(x)
