import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Example: y = x / (1 + the largest |x| of the row), in two passes over each row.
source = r"""
#include <torch/extension.h>
#include <cute/tensor.hpp>
#include <algorithm>
#include <cmath>

using namespace cute;

torch::Tensor peak_scale(torch::Tensor x) {
  TORCH_CHECK(x.dim() == 2 && x.is_contiguous(), "expected a contiguous matrix");
  int const rows = x.size(0), cols = x.size(1);
  auto y = torch::empty_like(x);
  auto layout = make_layout(make_shape(rows, cols), make_stride(int64_t(cols), _1{}));
  Tensor mX = make_tensor(static_cast<float const*>(x.data_ptr<float>()), layout);
  Tensor mY = make_tensor(y.data_ptr<float>(), layout);
  for (int r = 0; r < rows; ++r) {
    Tensor from = mX(r, _);
    Tensor to = mY(r, _);
    float peak = 0.f;
    for (int c = 0; c < cols; ++c) peak = std::max(peak, std::fabs(from(c)));
    float const scale = 1.f / (1.f + peak);
    for (int c = 0; c < cols; ++c) to(c) = from(c) * scale;
  }
  return y;
}
"""

extension = load_inline(name="peak_scale", cpp_sources=source, functions=["peak_scale"])


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.peak_scale(x)
