"""Finished runs with one kernel that really builds, written as an engine would have; and kernels for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from engine import supervisor
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.hardware_limit import DeviceFacts, HardwareLimit
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder
from storage.run.journal import Journal
from storage.run.settings import DepthOutcome, Origin, RunState

WITH_BACKWARD = '''
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
#include <cmath>

torch::Tensor swish_forward(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const float* from = x.data_ptr<float>();
  float* to = out.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i] / (1.0f + std::exp(-from[i]));
  return out;
}

torch::Tensor swish_backward(torch::Tensor gradient, torch::Tensor x) {
  auto out = torch::empty_like(x);
  const float* from = x.data_ptr<float>();
  const float* given = gradient.data_ptr<float>();
  float* to = out.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const float s = 1.0f / (1.0f + std::exp(-from[i]));
    to[i] = given[i] * s * (1.0f + from[i] * (1.0f - s));
  }
  return out;
}
"""

extension = load_inline(name="swish_both", cpp_sources=source, functions=["swish_forward", "swish_backward"])


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return extension.swish_forward(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return extension.swish_backward(gradient.contiguous(), x)


class ModelNew(nn.Module):
    def forward(self, x):
        return Swish.apply(x)
'''

LAYER_NORM = """
import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.norm = nn.LayerNorm(shape)

    def forward(self, x):
        mean = x.mean((1, 2, 3), keepdim=True)
        spread = (x - mean).square().mean((1, 2, 3), keepdim=True)
        return (x - mean) / torch.sqrt(spread + self.norm.eps) * self.norm.weight + self.norm.bias
"""

IN_PYTORCH = """
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)
"""


def judged_run(
    home: Path,
    task: str,
    kernel: str,
    sizes: dict[str, int | float] | None = None,
    *,
    toolchain: str = "cpu",
    language: str = "cute",
    backward: bool = False,
    latency_ms: float = 1.0,
) -> RunFolder:
    """A finished run whose one kernel is twice as fast as eager PyTorch at 1 ms."""
    settings = supervisor.new_settings(
        task, model="manual", overrides=sizes or {}, toolchain=toolchain, language=language
    )
    settings = replace(settings, policy=replace(settings.policy, backward=backward))
    folder = RunFolder(home / "runs" / settings.run_id)
    folder.write_settings(settings)
    book = Journal(folder.journal_file)
    book.append(ev.RunStarted(settings.run_id, task))
    book.append(ev.EngineStarted(1, False))
    facts = DeviceFacts("sm_90a" if toolchain == "cuda" else "avx2", 132, 3000.0)
    device = "NVIDIA H200" if toolchain == "cuda" else "a processor"
    book.append(ev.LimitMeasured(HardwareLimit(device, 3000.0, 60000.0, 1, 1, facts)))
    made = (1, "c001", None, None, 0, 0, 0, Origin.MANUAL, Blobs(folder.blobs).put(kernel), None, 0, 0)
    book.append(ev.CandidateCreated(*made, summary="the only one"))
    book.append(ev.Compiled(1, "c001", CompileResult(True, 1.0), None))
    book.append(ev.Checked(1, "c001", CheckResult(Verdict.PASSED, 1.0)))
    book.append(ev.Timed(1, "c001", TimingResult((latency_ms,) * 7, (2.0,) * 7)))
    book.append(ev.DepthFinished(1, 0, DepthOutcome.ACCEPTED, "c001", None, False, True, ""))
    book.append(ev.RunEnded(RunState.FINISHED, "done", "c001"))
    book.close()
    return folder
