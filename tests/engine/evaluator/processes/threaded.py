"""One extension with threads of every manner, so that tests of timing build it once."""

from __future__ import annotations

SOURCE = '''import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <vector>

static void fill(const float* x, float* y, int64_t from, int64_t to) {
  for (int64_t i = from; i < to; ++i) y[i] = x[i] / (1.0f + std::exp(-x[i]));
}

torch::Tensor swish(torch::Tensor x) {
  auto y = torch::empty_like(x);
  fill(x.data_ptr<float>(), y.data_ptr<float>(), 0, x.numel());
  return y;
}

torch::Tensor later(torch::Tensor x, int64_t microseconds) {
  auto y = torch::empty_like(x);
  std::thread([x, y, microseconds] {
    usleep(microseconds);
    fill(x.data_ptr<float>(), y.data_ptr<float>(), 0, x.numel());
  }).detach();
  return y;
}

torch::Tensor joined(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int64_t half = x.numel() / 2;
  std::thread other(fill, x.data_ptr<float>(), y.data_ptr<float>(), 0, half);
  fill(x.data_ptr<float>(), y.data_ptr<float>(), half, x.numel());
  other.join();
  return y;
}

torch::Tensor openmp(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const float* from = x.data_ptr<float>();
  float* to = y.data_ptr<float>();
#pragma omp parallel for
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i] / (1.0f + std::exp(-from[i]));
  return y;
}

struct Helper {
  std::mutex mutex;
  std::condition_variable wake;
  const float* x = nullptr;
  float* y = nullptr;
  int64_t to = 0;
  bool is_asked = false;
  std::thread thread{[this] {
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [this] { return is_asked; });
      fill(x, y, 0, to);
      is_asked = false;
      wake.notify_all();
    }
  }};
};

torch::Tensor pooled(torch::Tensor x) {
  static Helper* helper = new Helper;
  auto y = torch::empty_like(x);
  int64_t half = x.numel() / 2;
  {
    std::lock_guard lock(helper->mutex);
    helper->x = x.data_ptr<float>(), helper->y = y.data_ptr<float>(), helper->to = half, helper->is_asked = true;
  }
  helper->wake.notify_all();
  fill(x.data_ptr<float>(), y.data_ptr<float>(), half, x.numel());
  std::unique_lock lock(helper->mutex);
  helper->wake.wait(lock, [] { return !helper->is_asked; });
  return y;
}

static volatile bool is_burning = true;
void burn() {
  std::thread([] { while (is_burning) {} }).detach();
}

// Runs while the library loads, before any Python of the harness could look.
__attribute__((constructor)) static void at_load() {
  if (access("burn", F_OK) == 0) burn();
}
"""

ext = load_inline(
    name="threaded_ext", cpp_sources=SOURCE, functions=["swish", "later", "joined", "openmp", "pooled", "burn"]
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.swish(x)
'''


def forward(*lines: str, before: str = "") -> str:
    """The module with other lines in forward, and lines of its own before the extension loads."""
    body = "".join(f"        {line}\n" for line in lines)
    source = SOURCE.replace("        return ext.swish(x)\n", body)
    return source.replace("\next = load_inline(", f"\n{before}\next = load_inline(")
