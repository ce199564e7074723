"""What is told of a kernel's deployment on a GPU: capture in a CUDA graph, the current stream, memory of a call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.evaluator import tasks
from engine.evaluator.request import Evaluator
from storage.results.deployment import Deployment, Trait
from storage.results.vocabulary import Verdict
from tests.cheats.declaration import TRITON_KERNELS

pytestmark = pytest.mark.gpu

SIZES = {"batch_size": 512, "dim": 8192}
BYTES = 4 * 512 * 8192
CURRENT = "at::cuda::getCurrentCUDAStream()"
KERNEL = """
import torch
from torch.utils.cpp_extension import load_inline

CPP = "torch::Tensor swish(torch::Tensor x);"
CUDA = r'''
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cuda_runtime.h>

__global__ void swish_kernel(float const* x, float* y, long n) {{
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] / (1.0f + expf(-x[i]));
}}

torch::Tensor swish(torch::Tensor x) {{
    auto y = torch::empty_like(x);
    long n = x.numel();
    {before}
    swish_kernel<<<(n + 255) / 256, 256, 0, {stream}>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    {after}
    return y;
}}
'''
built = load_inline(name="swish_of_deployment", cpp_sources=CPP, cuda_sources=CUDA, functions=["swish"])


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.held = []

    def forward(self, x):
        {forward}
"""
CALL = "return built.swish(x)"


def kernel(stream: str = CURRENT, before: str = "", after: str = "", forward: str = CALL) -> str:
    return KERNEL.format(stream=stream, before=before, after=after, forward=forward)


def seen_of(gpu: Evaluator, source: str) -> Deployment:
    """After the verdict that it must have."""
    task = tasks.find("swish").task("cuda", SIZES)
    assert gpu.compile(task, source).is_ok
    checked = gpu.check(task, source)
    assert checked.verdict is Verdict.PASSED, checked.message
    return gpu.deploy(task, source)


def test_a_kernel_on_the_current_stream_is_captured_and_takes_its_output_alone(gpu: Any) -> None:
    seen = seen_of(gpu, kernel())
    assert (seen.capture, seen.why, seen.stream) == (Trait.HELD, "", Trait.HELD)
    assert seen.memory is not None
    assert (seen.memory.taken_bytes, seen.memory.allocations, seen.memory.peak_bytes) == (0, 0, 0)
    assert (seen.memory.kept_bytes, seen.memory.grown_bytes) == (0, 0)


@pytest.mark.parametrize("stream", ["0", "cudaStreamLegacy"])
def test_a_kernel_on_the_legacy_default_stream_follows_no_other_and_is_not_captured(gpu: Any, stream: str) -> None:
    """PyTorch's streams do not wait for it, so a capture goes on without the work, or the driver breaks it off."""
    seen = seen_of(gpu, kernel(stream))
    assert (seen.capture, seen.stream) == (Trait.LACKING, Trait.LACKING)
    assert "stream" in seen.why


def test_a_call_that_waits_for_the_device_follows_the_stream_and_is_not_captured(gpu: Any) -> None:
    seen = seen_of(gpu, kernel(after="cudaDeviceSynchronize();"))
    assert (seen.capture, seen.stream) == (Trait.LACKING, Trait.HELD)
    assert "what a capture does not permit" in seen.why


def test_a_call_that_takes_memory_from_the_driver_is_not_captured(gpu: Any) -> None:
    before = "void* room = nullptr; C10_CUDA_CHECK(cudaMalloc(&room, 1 << 20));"
    seen = seen_of(gpu, kernel(before=before, after="cudaFree(room);"))
    assert seen.capture is Trait.LACKING
    assert "what a capture does not permit" in seen.why


def test_scratch_of_the_allocator_is_counted_and_captured(gpu: Any) -> None:
    seen = seen_of(gpu, kernel(before="auto scratch = torch::empty({2, n}, x.options());"))
    assert (seen.capture, seen.stream) == (Trait.HELD, Trait.HELD)
    assert seen.memory is not None
    assert (seen.memory.taken_bytes, seen.memory.allocations, seen.memory.peak_bytes) == (2 * BYTES, 1, 2 * BYTES)
    assert seen.memory.kept_bytes == 0


def test_scratch_that_is_kept_from_call_to_call_is_told_apart_from_what_grows(gpu: Any) -> None:
    once = "self.held = self.held or [torch.empty_like(x)]; return built.swish(x)"
    kept = seen_of(gpu, kernel(forward=once)).memory
    grown = seen_of(gpu, kernel(forward="self.held.append(torch.empty(1024, device=x.device)); " + CALL)).memory
    assert kept is not None
    assert grown is not None
    assert (kept.kept_bytes, kept.grown_bytes, kept.allocations) == (BYTES, 0, 0)
    assert (grown.grown_bytes, grown.allocations, grown.taken_bytes) == (4096, 1, 4096)


def test_a_triton_kernel_is_captured(gpu: Any) -> None:
    seen = seen_of(gpu, (Path(TRITON_KERNELS) / "honest" / "autotuned.py").read_text())
    assert (seen.capture, seen.stream) == (Trait.HELD, Trait.HELD)
    assert seen.memory is not None
    assert seen.memory.allocations == 0
