"""Tries itself out when it is run as a program, which it is not here: seed, clock, library and all.

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


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.swish(x)


def sample():
    torch.manual_seed(0)
    return torch.randn(64, 4096)


def main():
    import subprocess

    torch.set_num_threads(1)
    x = sample()
    print(subprocess.run(["nproc"]), torch.allclose(ModelNew()(x), torch.compile(torch.nn.functional.silu)(x)))


if __name__ != "__main__":
    print("imported")
elif torch.cuda.is_available():
    torch.cuda.manual_seed(0)

if "__main__" == __name__:
    main()
else:
    READY = True
