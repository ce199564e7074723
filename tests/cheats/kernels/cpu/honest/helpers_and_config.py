"""A configuration class, helper methods, a lambda, assertions and prints around the kernel.

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

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["swish", "swish_into"])

from dataclasses import dataclass, field
from typing import Callable, Optional


@dataclass(frozen=True)
class Config:
    threads: int = 1
    names: list = field(default_factory=lambda: ["swish"])


class ModelNew(nn.Module):
    def __init__(self, config: Optional[Config] = None):
        super(ModelNew, self).__init__()
        self.config = config or Config()
        self.prepare: Callable = lambda x: x if x.is_contiguous() else x.contiguous()
        self.calls = 0
        print("ModelNew ready:", self.config)

    @staticmethod
    def matmul(x):
        """A name that sounds like a library's."""
        return ext.swish(x)

    def _check(self, x):
        assert x.dtype == torch.float32, "float32 only"
        assert x.dim() == 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self._check(x)
        y = self.matmul(self.prepare(x))
        if self.calls == 1:
            print(f"first call: {tuple(y.shape)}")
        return y.view(x.shape)
