"""Small tasks and candidates for checking: one extension whose functions are right, or wrong in one way each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from engine.evaluator import tasks
from engine.evaluator.tasks import Task
from storage.results.policy import EVERYTHING, Policy

SOURCE = '''import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>
#include <cstring>
#include <limits>
static float cut(float x, int bits) {
  if (bits >= 24 || !std::isfinite(x)) return x;
  int e; float m = std::frexp(x, &e);
  return std::ldexp(std::nearbyint(std::ldexp(m, bits)), e - bits);
}
torch::Tensor relu(torch::Tensor x, bool writes_zeros, bool keeps_nan) {
  auto y = torch::empty_like(x);
  const float* a = x.data_ptr<float>(); float* b = y.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    if (a[i] > 0) b[i] = a[i];
    else if (keeps_nan && a[i] != a[i]) b[i] = a[i];
    else if (writes_zeros) b[i] = 0;
  }
  return y;
}
torch::Tensor row_max(torch::Tensor x, bool clears) {
  int64_t rows = x.size(0), columns = x.size(1);
  auto y = torch::empty({rows}, x.options());
  const float* a = x.data_ptr<float>(); float* b = y.data_ptr<float>();
  for (int64_t r = 0; r < rows; ++r) {
    if (clears) b[r] = -std::numeric_limits<float>::infinity();
    for (int64_t c = 0; c < columns; ++c) b[r] = std::fmax(b[r], a[r * columns + c]);
  }
  return y;
}
torch::Tensor multiply(torch::Tensor A, torch::Tensor B, int64_t bits) {
  int64_t M = A.size(0), K = A.size(1), N = B.size(1);
  auto C = torch::zeros({M, N}, A.options());
  const float* a = A.data_ptr<float>(); const float* b = B.data_ptr<float>(); float* c = C.data_ptr<float>();
  for (int64_t m = 0; m < M; ++m)
    for (int64_t k = 0; k < K; ++k)
      for (int64_t n = 0; n < N; ++n) c[m * N + n] += cut(a[m * K + k], bits) * cut(b[k * N + n], bits);
  return C;
}
torch::Tensor total(torch::Tensor x) {
  auto y = torch::empty({}, x.options());
  const float* a = x.data_ptr<float>(); float sum = 0;
  for (int64_t i = 0; i < x.numel(); ++i) sum += a[i];
  *y.data_ptr<float>() = sum;
  return y;
}
torch::Tensor spoil(torch::Tensor w) { w.data_ptr<float>()[0] += 1e-3f; return w; }
"""
ext = load_inline(
    name="probes", cpp_sources=SOURCE, functions=["relu", "row_max", "multiply", "total", "spoil"]
)


class ModelNew(torch.nn.Module):
'''

TASK = """import torch

N = {n}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
{init}

    def forward(self, {arguments}):
        return {answer}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


def candidate(*lines: str, arguments: str = "x", init: str = "pass") -> str:
    """A candidate with these lines in forward."""
    body = "".join(f"        {line}\n" for line in lines)
    made = f"    def __init__(self):\n        super().__init__()\n        {init}\n\n"
    return f"{SOURCE}{made}    def forward(self, {arguments}):\n{body}"


def task(
    folder: Path,
    answer: str,
    inputs: str = "torch.randn(N, 48)",
    arguments: str = "x",
    init: str = "pass",
    n: int = 64,
    policy: Policy | None = None,
) -> Task:
    """A task on disk and read back; PyTorch may help its candidates."""
    path = folder / "probe.py"
    path.write_text(TASK.format(n=n, init=f"        {init}", arguments=arguments, answer=answer, inputs=inputs))
    read = tasks.read(path).task()
    policy = replace(policy or Policy(), library_operators=(EVERYTHING,))
    return Task(read.name, read.source, read.sizes, policy=policy)
