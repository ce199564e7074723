import torch
import torch.nn as nn
import triton
import triton.language as tl

# A program takes a row and walks over it twice: maximum and sum of exponentials together, then the result.


@triton.autotune(
    configs=[triton.Config({"TILE": tile}, num_warps=warps) for tile, warps in ((4096, 8), (8192, 8), (8192, 16), (16384, 16))],
    key=["cols"],
)
@triton.jit
def softmax_kernel(x, y, cols, TILE: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * cols
    at = tl.arange(0, TILE)
    peak = tl.full((), float("-inf"), tl.float32)
    total = tl.zeros((), tl.float32)
    for first in range(0, cols, TILE):
        v = tl.load(x + start + first + at, mask=first + at < cols, other=float("-inf"))
        higher = tl.maximum(peak, tl.max(v))
        base = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(peak - base) + tl.sum(tl.exp(v - base))
        peak = higher
    for first in range(0, cols, TILE):
        v = tl.load(x + start + first + at, mask=first + at < cols)
        tl.store(y + start + first + at, tl.exp(v - peak) / total, mask=first + at < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        rows, cols = x.shape
        softmax_kernel[(rows,)](x, y, cols)
        return y
