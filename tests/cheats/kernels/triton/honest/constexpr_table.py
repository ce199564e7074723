"""Extents from a table of constants, a global tl.constexpr, and a loop that is unrolled.

Task: swish batch_size=4096 dim=16384
Verdict: passed
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

TABLE = {torch.float32: (1024, 4), torch.float64: (512, 4)}
ONE = tl.constexpr(1.0)


@triton.jit
def swish_kernel(x, y, n, TILE: tl.constexpr, TIMES: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * (TILE * TIMES)
    for number in tl.static_range(TIMES):
        at = start + number * TILE + tl.arange(0, TILE)
        v = tl.load(x + at, mask=at < n)
        tl.store(y + at, v / (ONE + tl.exp(-v)), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y, (tile, times) = torch.empty_like(x), TABLE[x.dtype]
        swish_kernel[(triton.cdiv(x.numel(), tile * times),)](x.contiguous(), y, x.numel(), TILE=tile, TIMES=times)
        return y
