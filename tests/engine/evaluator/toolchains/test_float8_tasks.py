"""Tasks with 8-bit floats among inputs, weights and outputs, and kernels in C++ that read and write them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import BaselineUnavailable
from engine.evaluator import tasks
from engine.evaluator.processes import half_baseline
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.cpu import CpuToolchain
from storage.results.baselines import NO_SCALED_PRODUCT, Instead
from storage.results.evaluation_results import TimingResult
from storage.results.examination import Standing
from storage.results.policy import EVERYTHING, Policy
from storage.results.vocabulary import Verdict

PRODUCT = Path(__file__).resolve().parents[3] / "gpu" / "fp8_product.py"
QUANTISED = """
import torch
from torch import nn

MOST = 448.0


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(96))
        self.register_buffer("table", torch.randn(96).to(torch.{dtype}))

    def forward(self, x, y):
        wide = x.float() * self.weight * self.table.float() + y.float()
        scale = wide.abs().amax(1, keepdim=True).clamp(min=1e-12) / MOST
        return (wide / scale).clamp(-MOST, MOST).to(torch.{dtype}), scale


def get_inputs():
    return [torch.randn(40, 96, dtype=torch.bfloat16), torch.randn(40, 96).to(torch.{dtype})]


def get_init_inputs():
    return []
"""
KERNEL = r'''
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>
using F8 = at::{cpp};
std::vector<torch::Tensor> quantise(torch::Tensor x, torch::Tensor y, torch::Tensor w, torch::Tensor t) {{
  int rows = x.size(0), n = x.size(1);
  auto q = torch::empty_like(y);
  auto s = torch::empty({{rows, 1}}, w.options());
  auto px = x.data_ptr<at::BFloat16>(); auto py = y.data_ptr<F8>(); auto pt = t.data_ptr<F8>();
  auto pw = w.data_ptr<float>(); auto ps = s.data_ptr<float>(); auto pq = q.data_ptr<F8>();
  std::vector<float> row(n);
  for (int r = 0; r < rows; ++r) {{
    float most = 0;
    for (int i = 0; i < n; ++i) {{
      row[i] = float(px[r * n + i]) * pw[i] * float(pt[i]) + float(py[r * n + i]);
      most = std::fmax(most, std::fabs(row[i]));
    }}
    ps[r] = std::fmax(most, 1e-12f) / 448.f;
    for (int i = 0; i < n; ++i) {{
      float v = row[i] / ps[r];
      pq[r * n + i] = F8(std::fmin(std::fmax(v, -448.f), 448.f));
    }}
  }}
  return {{q, s}};
}}
"""
ext = load_inline(name="quantise", cpp_sources=SOURCE, functions=["quantise"])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(96))
        self.register_buffer("table", torch.empty(96, dtype=torch.{dtype}))

    def forward(self, x, y):
        q, s = ext.quantise(x, y, self.weight, self.table)
        return q, s
'''
CPP = {"float8_e4m3fn": "Float8_e4m3fn", "float8_e5m2": "Float8_e5m2"}
WRONG = {
    "another rounding": ("F8(std::fmin(std::fmax(v, -448.f), 448.f))",
                         "F8(std::fmin(std::fmax(v * 0.97f, -448.f), 448.f))"),
    "a scale of the whole": ("float most = 0;", "static float most = 0;"),
    "old weights": ("float(pt[i])", "1.f"),
}  # fmt: skip


SHIPPED = {
    "fp8_matmul": {"M": 48, "K": 160, "N": 32},
    "fp8_rowwise_matmul": {"M": 48, "K": 160, "N": 32},
    "int4_linear": {"M": 5, "K": 256, "N": 72},
    "rms_norm_fp8": {"rows": 37, "features": 328},
    "fp8_decode_attention": {"batch_size": 2, "heads": 6, "kv_heads": 3, "length": 77, "width": 32},
}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_task_judges_its_own_reference_as_right_and_in_float64(cpu: CpuToolchain, name: str) -> None:
    given = tasks.find(name).task("cpu", SHIPPED[name])
    given = replace(given, policy=replace(given.policy, library_operators=(EVERYTHING,), other_sizes=()))
    source = given.source.replace("class Model(", "class ModelNew(")
    found = cpu.check(given, source)
    assert found.verdict is Verdict.PASSED, found.message
    assert not any("no float64 form" in trial for trial in found.trials)
    assert sum("left out" not in trial for trial in found.trials) >= 8


def task(dtype: str, policy: Policy | None = None) -> Task:
    return Task("quantised", QUANTISED.format(dtype=dtype), {}, policy=policy or Policy())


def kernel(dtype: str) -> str:
    return KERNEL.format(dtype=dtype, cpp=CPP[dtype])


@pytest.mark.parametrize("dtype", CPP)
def test_a_kernel_in_cpp_is_judged_and_timed(cpu: CpuToolchain, dtype: str) -> None:
    given = task(dtype)
    examined = cpu.examine(given)
    assert examined.standing is Standing.DECIDED, examined.refusal
    assert {"weight", "table"} <= set(examined.varied)
    built = cpu.compile(given, kernel(dtype))
    assert built.is_ok, built
    found = cpu.check(given, kernel(dtype))
    assert found.verdict is Verdict.PASSED, found.message
    assert found.tolerance is not None
    assert found.tolerance < 1e-4
    assert not any("no float64 form" in trial for trial in found.trials)
    timed = cpu.time(given, kernel(dtype))
    assert isinstance(timed, TimingResult), timed


@pytest.mark.parametrize("fault", WRONG)
def test_what_is_quantised_otherwise_is_wrong(cpu: CpuToolchain, fault: str) -> None:
    source = kernel("float8_e4m3fn")
    found = cpu.check(task("float8_e4m3fn"), source.replace(*WRONG[fault]))
    assert found.verdict is Verdict.INCORRECT, found


def test_an_output_of_another_dtype_is_refused(cpu: CpuToolchain) -> None:
    source = kernel("float8_e4m3fn").replace("return q, s", "return q.float(), s")
    found = cpu.check(task("float8_e4m3fn"), source)
    assert found.verdict is Verdict.INCORRECT
    assert "has dtype float32" in found.message


def test_a_product_of_converted_matrices_is_timed_as_scaled_mm_has_it(
    cpu: CpuToolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TILEWRIGHT_COMPILED_BASELINE")
    timed = cpu.baseline(tasks.find(str(PRODUCT)).task("cpu", {}), Instead.SCALED)
    assert timed.baseline in (half_baseline.AS_IT_IS, half_baseline.IN_BFLOAT16)
    assert timed.speedup > 0
    other = tasks.of_text(PRODUCT.read_text().replace("a.float() *", "a.float().exp() *"), PRODUCT).task("cpu", {})
    with pytest.raises(BaselineUnavailable, match=f"^{NO_SCALED_PRODUCT}$"):
        cpu.baseline(other, Instead.SCALED)
