"""Candidate sources for tests: one honest swish kernel and small departures from it."""

from __future__ import annotations

SWISH = '''import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cute/tensor.hpp>
#include <cmath>
using namespace cute;

torch::Tensor swish(torch::Tensor x) {
  TORCH_CHECK(x.is_contiguous(), "x must be contiguous");
  auto y = torch::empty_like(x);
  auto X = make_tensor(x.data_ptr<float>(), make_layout((int)x.numel()));
  auto Y = make_tensor(y.data_ptr<float>(), make_layout((int)x.numel()));
  for (int i = 0; i < size(X); ++i) Y(i) = X(i) / (1.0f + std::exp(-X(i)));
  return y;
}
"""

ext = load_inline(name="swish_ext", cpp_sources=SOURCE, functions=["swish"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.swish(x)
'''

LOOP = "  for (int i = 0; i < size(X); ++i) Y(i) = X(i) / (1.0f + std::exp(-X(i)));\n"
CALL = "        return ext.swish(x)\n"
LOAD = 'functions=["swish"])'

# Tiles staged through registers: cute::copy moves them as 128-bit words, which breaks under strict aliasing.
TILED_LOOP = """  for (int t = 0; t < size(X) / 1024; ++t) {
    auto from = local_tile(X, Shape<Int<1024>>{}, make_coord(t));
    auto to = local_tile(Y, Shape<Int<1024>>{}, make_coord(t));
    auto tile = make_fragment_like(to);
    copy(from, tile);
    for (int i = 0; i < 1024; ++i) tile(i) = tile(i) / (1.0f + std::exp(-tile(i)));
    copy(tile, to);
  }
"""

FAST_EXP = """static inline float fast_exp(float x) {
  x = x < -87.f ? -87.f : x;
  x = x > 87.f ? 87.f : x;
  float n = __builtin_rintf(x * 1.44269504f);
  float r = x - n * 0.693359375f + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  int bits = ((int)n + 127) << 23;
  float scale;
  __builtin_memcpy(&scale, &bits, 4);
  return p * scale;
}
"""

FAST_LOOP = """  int tiles = (int)x.numel() / 4096;
  for (int t = 0; t < tiles; ++t) {
    auto from = local_tile(X, Shape<Int<4096>>{}, make_coord(t));
    auto to = local_tile(Y, Shape<Int<4096>>{}, make_coord(t));
#pragma omp simd
    for (int i = 0; i < 4096; ++i) to(i) = from(i) / (1.0f + fast_exp(-from(i)));
  }
"""


def swish(loop: str = LOOP, call: str = CALL, load: str = LOAD) -> str:
    """The honest kernel with its loop, its forward or its load_inline call replaced."""
    source = SWISH
    for old, new in ((LOOP, loop), (CALL, call), (LOAD, load)):
        assert old in source
        source = source.replace(old, new)
    return source.replace("torch::Tensor swish(", FAST_EXP + "torch::Tensor swish(") if loop == FAST_LOOP else source


def forward(*lines: str) -> str:
    """The honest kernel with other lines in forward."""
    return swish(call="".join(f"        {line}\n" for line in lines))
