"""The kernel is an operator that the library registers itself, loaded as such and asked for once more by the model.

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
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>
#include <cmath>

at::Tensor swish(const at::Tensor& x) {
  at::Tensor y = at::empty_like(x);
  const float* p = x.const_data_ptr<float>();
  float* q = y.mutable_data_ptr<float>();
  #pragma omp parallel for
  for (int64_t i = 0; i < x.numel(); ++i) q[i] = p[i] / (1.0f + std::exp(-p[i]));
  return y;
}

TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("swish(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CPU, m) { m.impl("swish", &swish); }
"""



def build():
    return load_inline(name="own_ops", cpp_sources=SOURCE, is_python_module=False, no_implicit_headers=True)


build()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        build()

    def forward(self, x):
        return torch.ops.own_ops.swish(x)
