"""The light headers give what PyTorch's own give, operator by operator, and say the same when they refuse."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engine.evaluator.build import request
from engine.evaluator.build.host import build, installation
from storage.home import home

SOURCE = r"""
#include <torch/extension.h>
#include <ATen/ATen.h>
std::vector<torch::Tensor> views(const torch::Tensor& x, std::vector<int64_t> shape) {
  return {x.permute({2, 0, 1}), x.transpose(0, -1), x.unsqueeze(1), x.unsqueeze(0).squeeze(0), x.select(1, 2), x[1],
          x.narrow(2, 1, 2), x.slice(1, 1, 3), x.slice(2, c10::nullopt, 2), x.flatten(), x.view({-1}),
          x.reshape(shape), x.transpose(0, 2).contiguous(), x.expand({2, 2, 3, 4}), x.clone(), x.to(torch::kDouble),
          x.to(at::kHalf), x.as_strided({2, 2}, {1, 3}), x.movedim(0, 2), x.view(torch::kInt), torch::zeros_like(x),
          torch::full({2, 3}, 1.5, x.options().dtype(torch::kFloat64)), torch::ones({4}, torch::kLong),
          torch::empty_like(x, x.options().dtype(torch::kInt)).fill_(7), x.new_zeros({2})};
}
std::tuple<int64_t, double, std::string, bool> facts(at::Tensor x, c10::optional<at::Tensor> other, float scale) {
  TORCH_CHECK(x.dim() == 3, "expected 3 dimensions, got ", x.dim(), " with sizes ", x.sizes());
  auto sum = x.accessor<float, 3>()[1][2][3] + x.stride(0) + x.size(-1) + (other ? other->numel() : 0);
  return {x.numel(), sum * scale, x.device().str() + toString(x.scalar_type()), x.is_contiguous()};
}
float scaled(torch::Tensor x, torch::IntArrayRef at) { return x[at[0]][at[1]][at[2]].item<float>(); }
void fill(torch::Tensor& x, double value) { x.copy_(torch::full_like(x, value)); }
double wrong(torch::Tensor x) { return *x.data_ptr<double>(); }
"""

SCRIPT = r"""
import sys, torch
torch.ops.load_library(sys.argv[1])
class Ext: pass
ext = Ext()
for name in ("views", "facts", "scaled", "fill", "wrong"):
    setattr(ext, name, getattr(getattr(torch.ops, sys.argv[2]), name).default)
x = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
want = [x.permute(2, 0, 1), x.transpose(0, -1), x.unsqueeze(1), x, x.select(1, 2), x[1], x.narrow(2, 1, 2), x[:, 1:3],
        x[:, :, :2], x.flatten(), x.view(-1), x.reshape(6, 4), x.transpose(0, 2).contiguous(), x.expand(2, 2, 3, 4),
        x.clone(), x.double(), x.half(), x.as_strided((2, 2), (1, 3)), x.movedim(0, 2), x.view(torch.int32),
        torch.zeros_like(x), torch.full((2, 3), 1.5, dtype=torch.float64), torch.ones(4, dtype=torch.long),
        torch.full((2, 3, 4), 7, dtype=torch.int32), torch.zeros(2)]
got = ext.views(x, [6, 4])
assert len(got) == len(want), len(got)
for number, (one, other) in enumerate(zip(got, want)):
    assert one.dtype == other.dtype and one.stride() == other.stride() and torch.equal(one, other), number
assert ext.facts(x, None, 2.0) == (24, 2 * (23 + 12 + 4), "cpuFloat", True)
assert ext.facts(x.transpose(0, 1), x, 1.0)[3] is False
assert ext.scaled(x, [1, 2, 3]) == 23.0
ext.fill(x, 3.0)
assert torch.equal(x, torch.full_like(x, 3.0))
def said(call):
    try:
        call()
    except RuntimeError as error:
        return str(error)
assert said(lambda: ext.facts(x[0], None, 1.0)) == "expected 3 dimensions, got 2 with sizes [3, 4]"
assert said(lambda: ext.wrong(x)) == "expected scalar type Double but found Float"
assert "shape" in said(lambda: ext.views(x, [5, 5]))
print("all the same")
"""


@pytest.fixture
def built(cpu_home: None) -> build.Built:
    builder = build.Builder(installation.find(), home() / "cache" / "cpu")
    names = ["views", "facts", "scaled", "fill", "wrong"]
    plain = {"name": "light", "sources": [SOURCE], "functions": names, "flags": []}
    return builder.build(request.read(plain), SOURCE)


def test_the_light_headers_give_what_pytorch_gives(built: build.Built, tmp_path: Path) -> None:
    assert built.binding == "stable", built.log
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), built.library, built.namespace]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "all the same\n", done.stderr[-2000:]
