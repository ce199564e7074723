"""Two kernels are measured on the inputs of the call, and the faster one is kept.

Task: swish batch_size=4096 dim=16384
Verdict: refused
Says: behind triton
Also without screening: refused | incorrect | passed | runtime_error
Known from: own
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
        y, n = torch.empty_like(x), x.numel()

        def call(tile):
            return lambda: swish_kernel[(triton.cdiv(n, tile),)](x, y, n, TILE=tile)

        tile = min((512, 1024, 2048), key=lambda one: triton.testing.do_bench(call(one)))
        call(tile)()
        return y
