"""ATen's operator, entered below the place where the dispatcher tells who runs.

Task: swish batch_size=512 dim=4096
Verdict: refused
Says: library
Also without screening: refused
Known from: own
Walls: not needed
Speedup: any
"""
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <ATen/ATen.h>

torch::Tensor swish(torch::Tensor x) {
  return at::_ops::silu::redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU), x);
}
"""

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["swish"])

class ModelNew(nn.Module):
    def forward(self, x):
        return ext.swish(x)
