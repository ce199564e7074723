import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"TILE": tile}, num_warps=warps) for tile, warps in ((512, 4), (1024, 4), (2048, 4), (4096, 8))],
    key=["n"],
)
@triton.jit
def swish_kernel(x, y, n, TILE: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    v = tl.load(x + at, mask=at < n)
    tl.store(y + at, v * tl.sigmoid(v), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        swish_kernel[lambda chosen: (triton.cdiv(x.numel(), chosen["TILE"]),)](x, y, x.numel())
        return y
