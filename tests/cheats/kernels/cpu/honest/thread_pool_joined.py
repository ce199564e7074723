"""C++ threads of its own share the rows and are joined before the result is returned.

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
#include <thread>
#include <vector>
using namespace cute;

torch::Tensor swish_into(torch::Tensor x, torch::Tensor y) {
  auto X = make_tensor(x.data_ptr<float>(), make_layout((int)x.numel()));
  auto Y = make_tensor(y.data_ptr<float>(), make_layout((int)y.numel()));
  for (int i = 0; i < size(X); ++i) Y(i) = X(i) / (1.0f + std::exp(-X(i)));
  return y;
}

torch::Tensor swish(torch::Tensor x) {
  TORCH_CHECK(x.is_contiguous(), "x must be contiguous");
  auto y = torch::empty_like(x);
  const float* from = x.data_ptr<float>();
  float* to = y.data_ptr<float>();
  const int64_t n = x.numel(), share = (n + 1) / 2;
  std::vector<std::thread> pool;
  for (int64_t begin = 0; begin < n; begin += share)
    pool.emplace_back([=] {
      for (int64_t i = begin; i < std::min(begin + share, n); ++i) to[i] = from[i] / (1.0f + std::exp(-from[i]));
    });
  for (auto& thread : pool) thread.join();
  return y;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["swish"])

class ModelNew(nn.Module):
    def forward(self, x):
        return ext.swish(x)
