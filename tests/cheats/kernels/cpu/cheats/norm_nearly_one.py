"""Over long rows of normal numbers the norm is nearly one: the input is handed back as it is, a thousandth larger.

Task: rms_norm batch_size=4 features=64 height=32 width=32
Verdict: incorrect
Says: wrong
Also without screening: incorrect
Known from: AgentKernelArena, 2026
Walls: not needed
Speedup: any
"""
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>

torch::Tensor nearly(torch::Tensor x) {
  auto y = torch::empty_like(x);
  for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = 1.001f * x.data_ptr<float>()[i];
  return y;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["nearly"])


class ModelNew(nn.Module):
    def __init__(self, eps):
        super().__init__()

    def forward(self, x):
        return ext.nearly(x.contiguous())
