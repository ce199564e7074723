import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Example: y = A @ x, a matrix times a vector, rows cut into tiles.
source = r"""
#include <torch/extension.h>
#include <cute/tensor.hpp>
#include <algorithm>

using namespace cute;

constexpr int BM = 8;    // rows of one tile
constexpr int BK = 128;  // columns of one tile

torch::Tensor matvec(torch::Tensor A, torch::Tensor x) {
  TORCH_CHECK(A.is_contiguous() && x.is_contiguous(), "expected contiguous tensors");
  int const M = A.size(0), K = A.size(1);
  auto y = torch::empty({M}, x.options());
  Tensor mA = make_tensor(static_cast<float const*>(A.data_ptr<float>()), make_shape(M, K), make_stride(K, _1{}));
  Tensor mx = make_tensor(static_cast<float const*>(x.data_ptr<float>()), make_shape(K));
  Tensor my = make_tensor(y.data_ptr<float>(), make_shape(M));
  for (int m0 = 0; m0 < M; m0 += BM) {
    Tensor acc = make_tensor<float>(Int<BM>{});  // one accumulator a row, in registers
    clear(acc);
    int const rows = std::min(BM, M - m0);
    for (int k0 = 0; k0 < K; k0 += BK) {
      int const cols = std::min(BK, K - k0);
      for (int i = 0; i < rows; ++i)
        for (int k = 0; k < cols; ++k) acc(i) += mA(m0 + i, k0 + k) * mx(k0 + k);
    }
    for (int i = 0; i < rows; ++i) my(m0 + i) = acc(i);
  }
  return y;
}
"""

extension = load_inline(name="matvec", cpp_sources=source, functions=["matvec"])


class ModelNew(nn.Module):
    def forward(self, A, x):
        return extension.matvec(A, x)
