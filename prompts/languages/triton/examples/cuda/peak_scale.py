import torch
import torch.nn as nn
import triton
import triton.language as tl

# Example: y = x / (1 + the largest |x| of the row), a row per program, in two passes over the row: a tile of running maxima is
# reduced once, after the first.


@triton.jit
def peak_scale_kernel(x, y, cols, TILE: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * cols
    lane = tl.arange(0, TILE)
    peaks = tl.zeros((TILE,), tl.float32)
    for first in range(0, cols, TILE):
        v = tl.load(
            x + start + first + lane, mask=first + lane < cols, other=0.0
        )  # 0: the least an absolute value can be
        peaks = tl.maximum(peaks, tl.abs(v))
    scale = 1.0 / (1.0 + tl.max(peaks, axis=0))
    for first in range(0, cols, TILE):
        inside = first + lane < cols
        v = tl.load(x + start + first + lane, mask=inside)
        tl.store(y + start + first + lane, v * scale, mask=inside)


def peak_scale(x):
    y = torch.empty_like(x)
    rows, cols = x.shape
    if rows and cols:
        peak_scale_kernel[(rows,)](x, y, cols, TILE=1024, num_warps=4)
    return y


class ModelNew(nn.Module):
    def forward(self, x):
        return peak_scale(x.contiguous())
