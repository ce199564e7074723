"""Two functions are called by the kernel, and the kernel has another name.

Task: swish batch_size=4096 dim=16384
Verdict: passed
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def logistic(v):
    return 1.0 / (1.0 + tl.exp(-v))


@triton.jit
def swish_of(v):
    return v * logistic(v)


@triton.jit
def swish_kernel(x, y, n, TILE: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    tl.store(y + at, swish_of(tl.load(x + at, mask=at < n)), mask=at < n)


class ModelNew(nn.Module):
    kernel = swish_kernel

    def forward(self, x):
        y = torch.empty_like(x)
        self.kernel[(triton.cdiv(x.numel(), 1024),)](x.contiguous(), y, x.numel(), TILE=1024)
        return y
