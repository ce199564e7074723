"""A kernel is defined and never launched.

Task: swish batch_size=4096 dim=16384
Verdict: refused
Says: never started
Also without screening: refused
Known from: KB
Walls: not needed
Speedup: any
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x, y, n, TILE: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    inside = at < n
    v = tl.load(x + at, mask=inside)
    tl.store(y + at, v * tl.sigmoid(v), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)
