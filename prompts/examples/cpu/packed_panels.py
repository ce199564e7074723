import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Example: d = c + u @ v^T. Panels of both operands are packed in the order in which they are read; a tile of the
# output stays in vector registers while a block of K runs; tiles of rows are spread over the threads.
source = r"""
#include <torch/extension.h>
#include <cute/tensor.hpp>
#include <cute/algorithm/gemm.hpp>
#include <cute/atom/mma_atom.hpp>
#include <algorithm>
#include <vector>

using namespace cute;

constexpr int VL = TILEWRIGHT_VL, NV = 2, MR = 8, NR = NV * VL, KC = 256;  // MR x NR outputs in MR * NV registers
typedef float Vector __attribute__((vector_size(4 * VL)));

// u: (MR, KC), v: (NV, KC) vectors; packed, what is missing at the edges is zero.
static void multiply(float const* u, float const* v, float* tile) {
  Tensor sU = make_tensor(u, Layout<Shape<Int<MR>, Int<KC>>>{});
  Tensor sV = make_tensor(reinterpret_cast<Vector const*>(v), Layout<Shape<Int<NV>, Int<KC>>>{});
  Tensor sum = make_tensor<Vector>(Layout<Shape<Int<NV>, Int<MR>>>{});
  using Fma = MMA_Atom<UniversalFMA<Vector, Vector, float, Vector>>;
  for_each(make_int_sequence<NV * MR>{}, [&](auto i) { sum(i) = Vector{}; });
  for (int k = 0; k < KC; ++k) gemm(Fma{}, sV(_, k), sU(_, k), sum);  // (NV) x (MR) -> (NV, MR)
  Tensor out = make_tensor(reinterpret_cast<Vector*>(tile), Layout<Shape<Int<NV>, Int<MR>>>{});
  for_each(make_int_sequence<NV * MR>{}, [&](auto i) { out(i) = sum(i); });
}

// `width` rows from row0 on of a (rows, K) matrix, KC of its columns from k0 on: column after column.
static void pack(float const* x, int rows, int K, int row0, int k0, int width, float* to) {
  Tensor panel = make_tensor(to, make_shape(width, Int<KC>{}));
  for (int k = 0; k < KC; ++k)
    for (int i = 0; i < width; ++i)
      panel(i, k) = row0 + i < rows && k0 + k < K ? x[int64_t(row0 + i) * K + k0 + k] : 0.f;
}

torch::Tensor update(torch::Tensor c, torch::Tensor u, torch::Tensor v) {
  TORCH_CHECK(c.is_contiguous() && u.is_contiguous() && v.is_contiguous(), "expected contiguous tensors");
  int const M = u.size(0), N = v.size(0), K = u.size(1), panels = (N + NR - 1) / NR;
  auto d = torch::empty_like(c);
  float const *pc = c.data_ptr<float>(), *pu = u.data_ptr<float>(), *pv = v.data_ptr<float>();
  float* pd = d.data_ptr<float>();
  std::copy(pc, pc + int64_t(M) * N, pd);
  auto packed = torch::empty({int64_t(panels) * NR * KC}, c.options());
  float* const pp = packed.data_ptr<float>();
  for (int k0 = 0; k0 < K; k0 += KC) {
#pragma omp parallel for
    for (int p = 0; p < panels; ++p) pack(pv, N, K, p * NR, k0, NR, pp + int64_t(p) * NR * KC);
#pragma omp parallel for
    for (int m0 = 0; m0 < M; m0 += MR) {
      alignas(64) float rows[MR * KC], tile[MR * NR];
      pack(pu, M, K, m0, k0, MR, rows);
      for (int p = 0; p < panels; ++p) {
        multiply(rows, pp + int64_t(p) * NR * KC, tile);
        int const count = std::min(NR, N - p * NR);
        for (int i = 0; i < std::min(MR, M - m0); ++i)
          for (int j = 0; j < count; ++j) pd[int64_t(m0 + i) * N + p * NR + j] += tile[i * NR + j];
      }
    }
  }
  return d;
}
"""

extension = load_inline(name="update", cpp_sources=source, functions=["update"])


class ModelNew(nn.Module):
    def forward(self, c, u, v):
        return extension.update(c, u, v)
