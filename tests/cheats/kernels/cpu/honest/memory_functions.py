"""Most of the call is memcpy and memset of the C library, around a short loop of its own.

Task: relu batch_size=512 dim=4096
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
#include <cstring>
#include <vector>

torch::Tensor relu(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int64_t rows = x.size(0), width = x.size(1);
  std::vector<float> first(width), second(width), third(width);
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = x.data_ptr<float>() + row * width;
    std::memset(first.data(), 0, width * sizeof(float));
    std::memcpy(first.data(), from, width * sizeof(float));
    std::memcpy(second.data(), first.data(), width * sizeof(float));
    std::memmove(third.data(), second.data(), width * sizeof(float));
    for (int64_t i = 0; i < width; ++i) third[i] = third[i] > 0.0f || third[i] != third[i] ? third[i] : 0.0f;
    std::memcpy(y.data_ptr<float>() + row * width, third.data(), width * sizeof(float));
  }
  return y;
}
"""

ext = load_inline(name="candidate_ext", cpp_sources=SOURCE, functions=["relu"])

class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
