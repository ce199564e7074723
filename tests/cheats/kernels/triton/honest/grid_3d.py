"""Three dimensions of programs, with strides in place of contiguous inputs.

Task: swish batch_size=4096 dim=16384
Verdict: passed
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x, y, rows, cols, down, across, TILE: tl.constexpr):
    row = (tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)).to(tl.int64)
    at = tl.program_id(0) * TILE + tl.arange(0, TILE)
    inside = at < tl.where(row < rows, cols, 0)
    v = tl.load(x + row * down + at * across, mask=inside)
    tl.store(y + row * cols + at, v * tl.sigmoid(v), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        y = torch.empty(rows, cols, dtype=x.dtype, device=x.device)
        grid = (triton.cdiv(cols, 1024), 64, triton.cdiv(rows, 64))
        swish_kernel[grid](x, y, rows, cols, x.stride(0), x.stride(1), TILE=1024)
        return y
