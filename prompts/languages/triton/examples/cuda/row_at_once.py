import torch
import torch.nn as nn
import triton
import triton.language as tl

# Example: y = x / (1 + the largest |x| of the row) with one read of the row: the whole row is a tile, its width the next power of
# two. A program takes several rows where they are short, so that it has enough to load.


@triton.jit
def row_kernel(x, y, rows, cols, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, WIDTH)
    at = row.to(tl.int64)[:, None] * cols + col[None, :]
    inside = (row < rows)[:, None] & (col < cols)[None, :]
    v = tl.load(x + at, mask=inside, other=0.0)
    peak = tl.max(tl.abs(v), axis=1)
    tl.store(y + at, v / (1.0 + peak)[:, None], mask=inside)


def row_at_once(x):
    y = torch.empty_like(x)
    rows, cols = x.shape
    if rows == 0 or cols == 0:
        return y
    width = triton.next_power_of_2(cols)
    if width > 16384:
        raise ValueError("longer rows take two passes, or several programs for each row")
    several = max(1, 2048 // width)
    warps = min(16, max(4, width // 512))
    row_kernel[(triton.cdiv(rows, several),)](x, y, rows, cols, ROWS=several, WIDTH=width, num_warps=warps)
    return y


class ModelNew(nn.Module):
    def forward(self, x):
        return row_at_once(x.contiguous())
