"""Build variables are set and paths are joined as many real candidates do.

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

import os
import warnings

os.environ.setdefault("MAX_JOBS", "2")
os.environ["TORCH_CUDA_ARCH_LIST"] = "9.0"
INCLUDE = os.path.join(os.environ.get("CUTLASS_PATH", "/usr/local/cutlass"), "include")
warnings.filterwarnings("ignore")

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

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["swish", "swish_into"],
                  extra_include_paths=[INCLUDE], extra_cflags=["-O3"], with_cuda=False)

class ModelNew(nn.Module):
    """Swish by a kernel: no torch.sigmoid(x), no F.silu(x), at::silu only in this comment."""

    def _run(self, x):
        x = x if x.is_contiguous() else x.contiguous()
        return ext.swish(x).reshape(x.shape)

    def forward(self, x):
        return self._run(x)
