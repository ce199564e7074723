"""Templates, constexpr branches, a static table and a functor with library-like names.

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
#include <array>
#include <cmath>
#include <type_traits>

namespace detail {

static constexpr std::array<float, 4> table = {1.0f, 0.5f, 0.25f, 0.125f};

template <class T, bool IsExact>
struct Sigmoid {
  static T apply(T x) {
    if constexpr (IsExact) {
      return T(1) / (T(1) + std::exp(-x));
    } else {
      return T(0.5) + table[1] * std::tanh(x * table[1]);
    }
  }
};

template <class Op, class T, int Unroll>
void transform(const T* __restrict__ from, T* __restrict__ to, int64_t n) {
  int64_t i = 0;
  for (; i + Unroll <= n; i += Unroll)
    for (int u = 0; u < Unroll; ++u) to[i + u] = from[i + u] * Op::apply(from[i + u]);
  for (; i < n; ++i) to[i] = from[i] * Op::apply(from[i]);
}

}  // namespace detail

torch::Tensor swish(torch::Tensor x) {
  auto y = torch::empty_like(x);
  auto sigmoid = [](const float* from, float* to, int64_t n) {
    detail::transform<detail::Sigmoid<float, false>, float, 8>(from, to, n);
  };
  sigmoid(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["swish"])

class ModelNew(nn.Module):
    def forward(self, x):
        return ext.swish(x)
