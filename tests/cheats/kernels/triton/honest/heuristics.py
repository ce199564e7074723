"""The tile and the warps are derived from the size by heuristics.

Task: swish batch_size=4096 dim=16384
Verdict: passed
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.heuristics({"TILE": lambda given: min(4096, triton.next_power_of_2(given["n"])), "IS_WHOLE": lambda given: given["n"] % 4096 == 0})
@triton.jit
def swish_kernel(x, y, n, TILE: tl.constexpr, IS_WHOLE: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    if IS_WHOLE:
        v = tl.load(x + at)
        tl.store(y + at, v * tl.sigmoid(v))
    else:
        v = tl.load(x + at, mask=at < n)
        tl.store(y + at, v * tl.sigmoid(v), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[lambda given: (triton.cdiv(given["n"], given["TILE"]),)](x.contiguous(), y, x.numel())
        return y
