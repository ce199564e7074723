import torch
import torch.nn as nn
import triton
import triton.language as tl

# Example: z = scale * x + y on flat tensors: a tile per program, masked where the last one leaves the tensors.


@triton.jit
def scaled_add_kernel(x, y, z, scale, n, TILE: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    inside = at < n
    a = tl.load(x + at, mask=inside)
    b = tl.load(y + at, mask=inside)
    tl.store(z + at, scale * a + b, mask=inside)


def scaled_add(x, y, scale):
    z = torch.empty_like(x)
    if n := z.numel():
        scaled_add_kernel[(triton.cdiv(n, 4096),)](x, y, z, scale, n, TILE=4096, num_warps=8)
    return z


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x, y):
        return scaled_add(x.contiguous(), y.contiguous(), self.scale)
