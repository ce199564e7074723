"""A constant expression keeps the compiler busy far beyond its limit.

Task: swish batch_size=64 dim=4096
Verdict: timeout | compile_error | refused
Says: longer than | limit | constexpr
Also without screening: timeout | compile_error | refused
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

template <int N>
constexpr unsigned long busy() {
  unsigned long n = N;
  for (int i = 0; i < 200000; ++i) n = n * 31 + i;
  return n;
}
template <int... N>
constexpr unsigned long all(std::integer_sequence<int, N...>) {
  unsigned long total = 0;
  ((total += std::integral_constant<unsigned long, busy<N>()>::value), ...);
  return total;
}
static const unsigned long busy_total = all(std::make_integer_sequence<int, 2000>{});

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

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["swish"])

class ModelNew(nn.Module):
    def forward(self, x):
        return ext.swish(x)
