"""Eight exponentials at a time from the C library's vector mathematics, with OpenMP.

Task: swish batch_size=512 dim=4096
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
#include <immintrin.h>

extern "C" __m128 _ZGVbN4v_expf(__m128);

torch::Tensor swish(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const float* from = x.data_ptr<float>();
  float* to = y.data_ptr<float>();
  const int64_t n = x.numel(), whole = n & ~int64_t(3);
  const __m128 one = _mm_set1_ps(1.0f);
#pragma omp parallel for
  for (int64_t i = 0; i < whole; i += 4) {
    const __m128 v = _mm_loadu_ps(from + i);
    _mm_storeu_ps(to + i, _mm_div_ps(v, _mm_add_ps(one, _ZGVbN4v_expf(_mm_sub_ps(_mm_setzero_ps(), v)))));
  }
  for (int64_t i = whole; i < n; ++i) to[i] = from[i] / (1.0f + std::exp(-from[i]));
  return y;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["swish"],
                  extra_cflags=["-O3", "-fopenmp"], extra_ldflags=["-lmvec"])

class ModelNew(nn.Module):
    def forward(self, x):
        return ext.swish(x)
