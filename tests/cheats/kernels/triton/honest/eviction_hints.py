"""A row is kept in the L2 cache from one pass to the next, by hints on the loads of this call alone.

Task: softmax batch_size=512 dim=16384
Verdict: passed
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, y, cols, TILE: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * cols
    best = tl.full((TILE,), float("-inf"), tl.float32)
    for start in range(0, cols, TILE):
        at = start + tl.arange(0, TILE)
        v = tl.load(x + first + at, mask=at < cols, other=float("-inf"), eviction_policy="evict_last")
        best = tl.maximum(best, v, propagate_nan=tl.PropagateNan.ALL)
    top = tl.max(best, 0)
    total = tl.zeros((TILE,), tl.float32)
    for start in range(0, cols, TILE):
        at = start + tl.arange(0, TILE)
        v = tl.load(x + first + at, mask=at < cols, other=float("-inf"), eviction_policy="evict_last")
        total += tl.exp(v - top)
    scale = 1.0 / tl.sum(total, 0)
    for start in range(0, cols, TILE):
        at = start + tl.arange(0, TILE)
        v = tl.load(x + first + at, mask=at < cols, eviction_policy="evict_first")
        tl.store(y + first + at, tl.exp(v - top) * scale, mask=at < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, y, x.shape[1], TILE=2048)
        return y
