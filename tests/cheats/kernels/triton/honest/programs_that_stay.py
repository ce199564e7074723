"""As many programs as multiprocessors hold, each walking over the tensor.

Task: swish batch_size=4096 dim=16384
Verdict: passed
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x, y, n, TILE: tl.constexpr):
    step = tl.num_programs(0).to(tl.int64) * TILE
    for first in tl.range(tl.program_id(0).to(tl.int64) * TILE, n, step, num_stages=2):
        at = first + tl.arange(0, TILE)
        v = tl.load(x + at, mask=at < n)
        tl.store(y + at, v * tl.sigmoid(v), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        count = torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 8
        swish_kernel[(8 * count,)](x.contiguous(), y, x.numel(), TILE=2048, num_warps=8)
        return y
